"""Methods of pandas frames: importing this module gives every ``pandas.DataFrame`` the accessor ``lookalike``.

>>> import pandas
>>> import lookalike.pandas
>>> frame = pandas.DataFrame({"text": ["a rose is a rose", "A rose is a rose!", "something else"]})
>>> frame.lookalike.dedup("text")["text"].tolist()
['A rose is a rose!', 'something else']
>>> frame.lookalike.annotated("text")["is_duplicate"].tolist()
[True, False, False]

``frame.lookalike.dedup(text=None, **options)`` is the frame of the rows that are kept, ``frame.lookalike.annotated(text=None, **options)`` that
of all rows, with columns for the decision on each: see :meth:`lookalike.DedupResult.annotated`. Options are those of
:func:`lookalike.dedup`.
"""

import pandas

from lookalike._methods import FrameMethods

__all__: list[str] = []

pandas.api.extensions.register_dataframe_accessor("lookalike")(FrameMethods)
