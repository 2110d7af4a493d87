"""The papers: their studies, how these are drawn, and kinds of claims that only they have.

Each is found as an installed package would be, by entry points; nothing else imports them.
"""
