"""Answers to questions about scores: `answer(frame, Question(...))` compares methods and says what it found."""

from results.answer.answer_question import answer
from results.answer.answers import Answer
from results.answer.question import Question

__all__ = ["Answer", "Question", "answer"]
