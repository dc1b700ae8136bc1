"""Every surrogate: how it is built, what it learns from, how it is stored."""
