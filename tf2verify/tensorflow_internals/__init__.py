"""All that is used of TensorFlow and tf-keras without being public API: a file a subsystem.

Each file says what it uses, why no public name serves, and with which versions that has been run.
No other module may import such a name (`tests/repo/layering_test.py`), and
`tests/tensorflow_internals_test.py` says which one a new TensorFlow has moved.
"""
