"""An item pipeline of Scrapy that asks a service: seen before, or new?

    lookalike serve --data store
    scrapy runspider scrapy_pipeline.py -a start=http://site.example/ -o new.jsonl

In a project, name the pipeline in the settings: ITEM_PIPELINES = {"scrapy_pipeline.DropSeenPages": 300}, and the service and collection
with LOOKALIKE_URL and LOOKALIKE_COLLECTION.
"""

from datetime import datetime, timezone

import scrapy
from scrapy.exceptions import DropItem

import lookalike as lk


class DropSeenPages:
    """Drops items whose text the service knows, exactly or nearly, and tells it of the others."""

    def __init__(self, url: str, collection: str, field: str) -> None:
        self.client = lk.AsyncClient(url)
        self.collection = collection
        self.field = field

    @classmethod
    def from_crawler(cls, crawler):
        settings = crawler.settings
        return cls(
            settings.get("LOOKALIKE_URL", "http://127.0.0.1:7280"),
            settings.get("LOOKALIKE_COLLECTION", "pages"),
            settings.get("LOOKALIKE_FIELD", "text"),
        )

    async def process_item(self, item):
        # An id for each visit: a page is not compared with what stands under its own id.
        now = datetime.now(timezone.utc).isoformat()
        document = {"id": f"{item['url']} {now}", "text": item[self.field]}
        # On a thread of its own: the crawl goes on meanwhile.
        answer = await self.client.check_and_insert(self.collection, document)
        if answer["verdict"] != "new":
            known = answer["copy_of"] or answer["neighbours"][0]["id"]
            raise DropItem(f"{item['url']} is {answer['verdict']}: {known}")
        return item


class PageSpider(scrapy.Spider):
    """Follows all links of a site, and gives each page's main text."""

    name = "pages"
    custom_settings = {
        "ITEM_PIPELINES": {DropSeenPages: 300},
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    }

    def __init__(self, start: str, **arguments) -> None:
        super().__init__(**arguments)
        self.start_urls = [start]

    def parse(self, response):
        yield {"url": response.url, "text": lk.extract(response.body)}
        yield from response.follow_all(css="a[href]")
