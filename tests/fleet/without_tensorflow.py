"""Imported before tf2verify, keeps it from importing TensorFlow, as `fleet` itself does."""

import sys

sys.orig_argv = ['python', '-m', 'tf2verify', 'fleet', *sys.argv[1:]]
