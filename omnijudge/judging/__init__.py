"""Asking a judge: questions, answers, engines, and what is kept of them."""
