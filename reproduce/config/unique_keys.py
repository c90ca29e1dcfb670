"""A YAML reader that refuses a key that is given twice. YAML's own reader silently takes the last value."""

from collections.abc import Hashable
from typing import Any

import yaml
from yaml.constructor import ConstructorError


class UniqueKeyLoader(yaml.SafeLoader):
    """Reads YAML as `yaml.safe_load`, but refuses a mapping with a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the keys and values of a mapping.

        Raises:
            ConstructorError: A key is given twice, or cannot be a key.
        """
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node)
            if key in seen:
                problem = f"key {key!r} is given twice; keep one of them"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
