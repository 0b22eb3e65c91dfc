"""Reads metrics with the parser of `prometheus_client`, from stdin: a JSON list of families, each with its type, help and samples."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = [
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [
            {"name": sample.name, "labels": sample.labels, "value": sample.value} for sample in family.samples
        ],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
]
print(json.dumps(families))
