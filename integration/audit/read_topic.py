#!/usr/bin/python3
"""Reads a cell's log with stock tools only: a Kafka client, protobuf, and the published schema.

    read_topic.py BROKERS CELL [--key KEY]...     one JSON object a line: position, type, format, key, record

It knows nothing of Muster but proto/muster/v1: the topic is the cell, a record's key is the id of what it is about
(`job/12`, `node/a1`; a submission, which has no id yet, has `key/` and its idempotency key), its headers `type` and `format` say what the value is. It ends where the topic ended when it began. (The position is
the offset as long as the log was never moved: its first record, LogOpened, says the base.)
"""
import argparse
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

import confluent_kafka
from google.protobuf import json_format

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def record_message(directory):
    """The class muster.v1.Record, generated from the published schema."""
    schema = ["muster/v1/record.proto", "muster/v1/job.proto"]
    subprocess.run(["protoc", f"-I{PROTO}", f"--python_out={directory}", *schema], check=True)
    sys.path.insert(0, directory)
    return importlib.import_module("muster.v1.record_pb2").Record


def messages(brokers, topic):
    """Every message of the topic's one partition, from its beginning to its present end."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": brokers, "group.id": "audit", "enable.auto.commit": False,
                                         "auto.offset.reset": "error", "check.crcs": True})
    try:
        first, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=30)
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, first)])
        while first < end:
            message = consumer.poll(30)
            if message is None:
                raise SystemExit(f"{topic}: nothing came for 30 s at offset {first}, though it ends at {end}")
            if message.error():
                raise SystemExit(f"{topic}: {message.error()}")
            first = message.offset() + 1
            yield message
    finally:
        consumer.close()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("brokers")
    options.add_argument("cell")
    options.add_argument("--key", action="append", help="only records with this key")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        record_class, base = record_message(directory), 0
        for message in messages(options.brokers, options.cell):
            headers = {name: value.decode() for name, value in message.headers() or []}
            record = record_class.FromString(message.value())
            if record.HasField("log_opened"):
                base = record.log_opened.base
            key = message.key().decode()
            if options.key is None or key in options.key:
                print(json.dumps({"position": base + message.offset(), "type": headers["type"],
                                  "format": int(headers["format"]), "key": key,
                                  "record": json_format.MessageToDict(record, preserving_proto_field_name=True)}))


if __name__ == "__main__":
    main()
