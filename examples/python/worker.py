"""Consumes the queues of this pod's partitions, beside "idalloc watch --partitions --drain=http". README.md says more."""
import json, os, signal, urllib.error, urllib.request
import pika

DIR = os.environ.get("IDALLOC_DIR", "/var/run/idalloc")
URL = os.environ.get("IDALLOC_URL", "http://127.0.0.1:8089")
QUEUES, RESULTS, DEAD = os.environ.get("QUEUES", "orders-P"), os.environ.get("RESULTS", "results"), os.environ.get("DEAD", "orders-dead")

def read(name):
    with open(os.path.join(DIR, name), encoding="utf-8") as file:
        return file.read()

def tokens(identity):
    """What this pod may work on: {partition: token}. The token of each later owner of a partition is higher."""
    runs = identity["partitions"]["tokens"] or {} if identity["state"] == "assigned" else {}
    ends = [(*(run + "-" + run).split("-")[:2], token) for run, token in runs.items()]
    return {n: token for first, last, token in ends for n in range(int(first), int(last) + 1)}

def report(identity):
    """Says that the work on what is stopping has stopped. Other pods may have that from then on."""
    partitions = identity.get("partitions", {})
    if identity["state"] == "draining" and identity.get("stop"):
        query = f"stop={identity['stop']}"
    elif partitions.get("stopping"):
        query = f"partitions={partitions['stopping']}&stop={partitions['stop']}"
    else:
        return
    headers = {"Idalloc-Drain-Secret": read("drain-secret").strip()}
    try:
        urllib.request.urlopen(urllib.request.Request(f"{URL}/v1/drained?{query}", method="POST", headers=headers), timeout=5).close()
    except urllib.error.URLError as error:  # it is said again. 409: it was heard before
        print("not reported:", error, flush=True)

def process(body):
    """Stands for the work. A ValueError says that the message can never be processed."""
    return json.dumps(json.loads(body)).encode()

def work(token):
    def handle(channel, method, _, body):
        # What it writes carries the token, so that the system behind it can refuse an earlier owner.
        headers = {"token": token, "queue": method.routing_key}
        try:
            queue, body = RESULTS, process(body)
        except (ValueError, RecursionError) as error:
            queue, headers["error"] = DEAD, str(error)
        # Returns once a queue has it on disk. Otherwise it raises: the program ends, and the broker delivers the message again.
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2, headers=headers), mandatory=True)
        channel.basic_ack(method.delivery_tag)
    return handle

def main():
    ended, consuming = [], {}
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["RABBITMQ_URL"]))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_qos(prefetch_count=10)
    for queue in RESULTS, DEAD:
        channel.queue_declare(queue, durable=True)
    while not ended:
        identity = json.loads(read("identity.json"))
        may = tokens(identity)
        for n in [n for n in consuming if may.get(n) != consuming[n][0]]:
            channel.basic_cancel(consuming.pop(n)[1])  # no message is in hand here, and what was sent ahead goes back
        report(identity)
        for n in sorted(may.keys() - consuming.keys()):
            channel.queue_declare(f"{QUEUES}{n}", durable=True)
            consuming[n] = may[n], channel.basic_consume(f"{QUEUES}{n}", work(may[n]))
        connection.process_data_events(time_limit=0.1)  # calls handle, for one message after the other
    connection.close()

main()
