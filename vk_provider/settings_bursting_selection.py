"""What counts as home, inference and training: blocks of kind ``Bursting``. Pure.

Fed by :mod:`vk_provider.settings_bursting`; the value is
:class:`vk_provider.bursting.picture.Selection`.
"""

from __future__ import annotations

from vk_provider.bursting.picture import Selection
from vk_provider.doubts import misspelt_device
from vk_provider.fields import Fields


def parse_selection(spec: Fields) -> Selection:
    """``resource``, ``home``, ``inference`` and ``training`` of the spec."""
    usual = Selection()
    home, inference, training = (spec.child(key) for key in ("home", "inference", "training"))
    labels = inference.mapping("labels")
    if inference.has("labels") and not labels:
        inference.refuse("labels", "found nothing, allowed: at least one label")
    resource = spec.text("resource", usual.resource)
    if (doubt := misspelt_device(spec.at("resource"), resource)) is not None:
        spec.problems.append(doubt)
    selection = Selection(
        resource=resource,
        home=home.mapping("nodeSelector"),
        inference=labels or usual.inference,
        priority_classes=frozenset(
            training.texts("priorityClasses", tuple(usual.priority_classes))
        ),
        queues=frozenset(training.texts("clusterQueues")),
    )
    for block in (home, inference, training):
        block.done()
    return selection
