"""Methods of polars frames: importing this module gives every ``polars.DataFrame`` the namespace ``lookalike``.

>>> import polars
>>> import lookalike.polars
>>> frame = polars.DataFrame({"text": ["a rose is a rose", "A rose is a rose!", "something else"]})
>>> frame.lookalike.dedup("text")["text"].to_list()
['A rose is a rose!', 'something else']
>>> frame.lookalike.annotated("text")["is_duplicate"].to_list()
[True, False, False]

``frame.lookalike.dedup(text=None, **options)`` is the frame of the rows that are kept, ``frame.lookalike.annotated(text=None, **options)`` that
of all rows, with columns for the decision on each: see :meth:`lookalike.DedupResult.annotated`. Options are those of
:func:`lookalike.dedup`.
"""

import polars

from lookalike._methods import FrameMethods

__all__: list[str] = []

polars.api.register_dataframe_namespace("lookalike")(FrameMethods)
