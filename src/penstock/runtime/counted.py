"""What a running join has counted, put together as its metrics."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from penstock.runtime.metrics import Frozen, Metrics, StreamMetrics, shown_watermark
from penstock.shedding.ledger import loss_of

if TYPE_CHECKING:
    from penstock.runtime.join import Join

__all__ = ["metrics_of"]


def metrics_of(join: Join) -> Metrics:
    """The counters of this moment."""
    driver = join.driver
    shedder = driver.shedder
    loss = loss_of(shedder, driver.produced)
    promises = driver.promises
    streams = {
        name: StreamMetrics(
            **asdict(join.counts[number]),
            waiting=join.gate.rows(number),
            live=driver.windows.live(number),
            expired=driver.windows.expired(number),
            watermark=shown_watermark(join.clock.watermarks[number]),
            shed=int(shedder.losses.shed[number]),
            unprobed=int(shedder.losses.unprobed[number]),
            lost=loss.by_stream[number] if loss.by_stream else 0,
            discarded=promises.discarded[number] if promises else 0,
            purged=promises.purged[number] if promises else 0,
        )
        for number, name in enumerate(join.query.names)
    }
    return Metrics(
        produced=driver.produced,
        late=sum(each.late for each in streams.values()),
        live=sum(each.live for each in streams.values()),
        bytes=driver.windows.state_bytes
        + driver.windows.payload_bytes
        + (promises.nbytes if promises else 0),
        watermark=shown_watermark(join.clock.watermark),
        streams=Frozen(streams),
        shed=sum(each.shed for each in streams.values()),
        unprobed=sum(each.unprobed for each in streams.values()),
        lost=loss.lost,
        lost_interval=loss.interval,
        lost_by=Frozen(loss.by_reason),
        ghosts=shedder.ghosts.held,
        propagated=promises.told.count if promises else 0,
    )
