"""Answers to questions about scores: `answer(frame, Question(...))` compares methods and says what it found."""

from results.answer.answer_question import answer
from results.answer.question import Question
from results.answer.values import Answer

__all__ = ["Answer", "Question", "answer"]
