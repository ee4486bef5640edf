"""Fakes and real servers for the tests."""
