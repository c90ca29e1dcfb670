"""Figures: functions that take plain values and return a matplotlib `Figure`. `style` has their common look."""
