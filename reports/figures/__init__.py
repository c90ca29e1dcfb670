"""Figures: plain values in, a matplotlib `Figure` out. One module per figure; `style` gives them one look."""
