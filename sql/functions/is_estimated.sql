-- Whether evidence is no record of the run itself: a tag of the bill, or a machine like the one the run describes.
-- args: evidence
evidence in ('tag', 'tag_folded', 'type_match')
