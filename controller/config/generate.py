#!/usr/bin/env python3
"""Writes the static tables of definition.h from the definitions of one Kafka version.

  generate.py KAFKA-VERSION.json OUT.c

The data file has the sections topic, broker, quota_client, quota_user, quota_ip and quota_broker: key -> definition.
  type         BOOLEAN STRING SHORT INT LONG DOUBLE LIST CLASS PASSWORD
  default      text, or null
  valid        "[min,...,max]" (either may be missing), with " or N" for one more value; "[a, b]" for one of these words
               (each item of a LIST), with "(case insensitive) " before it; "non-empty string", "non-empty list",
               "metadata version", "throttled replicas", "SCRAM credential"
  synonyms     topic: the broker keys it falls back to, in order; [key, n]: one of its units is worth n of the topic's
  update       broker: "per-broker" or "cluster-wide"; without it the key is read-only
  replaced_by  broker: the key that, when set dynamically, takes this one's static value out of the way
  older        broker: the key that a topic falls back to while this one has its default
  listener_only, mechanism   broker: dynamic only with a listener prefix; may follow a listener and a SASL mechanism
  internal     broker: not shown unless it is set
"""
import json
import re
import sys

TYPES = ('BOOLEAN', 'STRING', 'SHORT', 'INT', 'LONG', 'DOUBLE', 'LIST', 'CLASS', 'PASSWORD')
SECTIONS = ('topic', 'broker', 'quota_client', 'quota_user', 'quota_ip', 'quota_broker')
KNOWN = {'type', 'default', 'valid', 'synonyms', 'update', 'replaced_by', 'older', 'listener_only', 'mechanism', 'internal'}
RULES = {'non-empty string': 'RULE_NON_EMPTY', 'non-empty list': 'RULE_NON_EMPTY', 'metadata version': 'RULE_METADATA_VERSION',
         'throttled replicas': 'RULE_THROTTLED_REPLICAS', 'SCRAM credential': 'RULE_SCRAM'}
UPDATES = {None: 'UPDATE_READ_ONLY', 'per-broker': 'UPDATE_PER_BROKER', 'cluster-wide': 'UPDATE_CLUSTER_WIDE'}
NUMBER = r'-?[0-9]+(?:\.[0-9]+)?'


def text(s):
    return 'NULL' if s is None else json.dumps(s)


def valid_range(valid):
    """(min, max, also) as texts or None, or None if it is no range"""
    m = re.fullmatch(rf'\[({NUMBER})?,?\.\.\.,?({NUMBER})?\](?: or ({NUMBER}))?', valid)
    return m.groups() if m else None


def words(valid):
    m = re.fullmatch(r'(\(case insensitive\) )?\[([^\]]*)\]', valid)
    return (bool(m.group(1)), [w.strip() for w in m.group(2).split(',')]) if m else None


class Writer:
    def __init__(self):
        self.shared, self.names = [], {}

    def array(self, ctype, prefix, body):
        """the name of a static array with that body; equal ones are shared"""
        if body not in self.names:
            self.names[body] = f'{prefix}_{len(self.names)}'
            self.shared.append(f'static const {ctype} {self.names[body]}[] = {{{body}}};')
        return self.names[body]

    def rule(self, key, d):
        valid = d.get('valid')
        if valid is None:
            return ['.rule = RULE_NONE']
        if valid in RULES:
            return [f'.rule = {RULES[valid]}']
        r = valid_range(valid)
        if r:
            low, high, also = r
            out = ['.rule = RULE_RANGE']
            if d['type'] == 'DOUBLE':
                low, high = low or '-1.7976931348623157e308', high or '1.7976931348623157e308'
                out += [f'.min_double = {low}', f'.max_double = {high}']
            else:
                out += [f'.min = {low}' if low else '.min = INT64_MIN', f'.max = {high}' if high else '.max = INT64_MAX']
            if also:
                out += [f'.also = {also}', '.has_also = true']
            return out
        w = words(valid)
        if w:
            fold, items = w
            name = self.array('char *const', 'words', ', '.join(text(i) for i in items) + ', NULL')
            return [f'.rule = {"RULE_ONE_OF_FOLD" if fold else "RULE_ONE_OF"}', f'.words = {name}']
        raise SystemExit(f'{key}: cannot read the valid values `{valid}`')

    def definition(self, key, d):
        if d['type'] not in TYPES or set(d) - KNOWN:
            raise SystemExit(f'{key}: unknown type or field')
        out = [f'.name = {text(key)}', f'.type = TYPE_{d["type"]}', f'.value = {text(d["default"])}'] + self.rule(key, d)
        out.append(f'.update = {UPDATES[d.get("update")]}')
        if d.get('synonyms'):
            pairs = [(s, 1) if isinstance(s, str) else tuple(s) for s in d['synonyms']]
            name = self.array('struct config_synonym', 'synonyms', ', '.join(f'{{{text(s)}, {n}}}' for s, n in pairs) + ', {NULL, 0}')
            out.append(f'.synonyms = {name}')
        out += [f'.{name} = {text(d[name])}' for name in ('replaced_by', 'older') if d.get(name)]
        out += [f'.{flag} = true' for flag in ('listener_only', 'mechanism', 'internal') if d.get(flag)]
        return '    {' + ', '.join(out) + '},'


def main():
    data = json.load(open(sys.argv[1], encoding='utf-8'))
    writer, tables = Writer(), []
    for section in SECTIONS:
        keys = sorted(data[section], key=lambda k: k.encode())
        rows = [writer.definition(k, data[section][k]) for k in keys]
        tables.append(f'const struct config_table config_table_{section} = {{(const struct config_def[]){{\n' + '\n'.join(rows) + f'\n}}, {len(rows)}}};\n')
    for key, d in data['topic'].items():
        for s in d.get('synonyms', []):
            name = s if isinstance(s, str) else s[0]
            if name not in data['broker']:
                raise SystemExit(f'{key}: no broker key {name}')
    versions = ', '.join(text(v) for v in data['metadata_versions']) + ', NULL'
    with open(sys.argv[2], 'w', encoding='utf-8') as f:
        f.write(f'/* Written by generate.py from the definitions of Kafka {data["kafka"]}; not to be edited. */\n')
        f.write('#include "controller/config/definition.h"\n\n' + '\n'.join(writer.shared) + '\n\n')
        f.write(f'const char *const config_metadata_versions[] = {{{versions}}};\n\n' + '\n'.join(tables))


if __name__ == '__main__':
    main()
