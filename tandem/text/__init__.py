"""Strings in, strings out: what is language, what comes back untouched, and how a translation is put together again.

Nothing here knows a model, a server or a cache. The entry is `tandem.text.plan.plan_text`.
"""
