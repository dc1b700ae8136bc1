"""Every surrogate, built, trained, judged and deployed the same way."""
