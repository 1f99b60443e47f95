"""Methods of polars frames: importing this module gives every ``polars.DataFrame`` the namespace ``lookalike``.

>>> import polars
>>> import lookalike.polars
>>> frame = polars.DataFrame({"text": ["a rose is a rose", "A rose is a rose!", "something else"]})
>>> frame.lookalike.dedup("text")["text"].to_list()
['A rose is a rose!', 'something else']
>>> frame.lookalike.annotated("text")["is_duplicate"].to_list()
[True, False, False]
"""

import polars

from lookalike._methods import FrameMethods

__all__: list[str] = []

polars.api.register_dataframe_namespace("lookalike")(FrameMethods)
