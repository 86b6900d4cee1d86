// Rabbitmq processes the events of orders, each order's in their order, in as many pods as one likes. There are P queues,
// OrderEvents-P0 and on. The hash of the order's id selects the queue of its events. A queue is a partition of the workload:
// idalloc decides which pod consumes it.
//
//	rabbitmq produce N     sends N events
//	rabbitmq consume       consumes the queues of this pod until SIGTERM
//
// What to copy from it is Consumer.Work in consumer.go, and its call in main.go.
//
//	RABBITMQ_URL              the broker; default amqp://guest:guest@127.0.0.1:5672/
//	PARTITIONS                how many queues there are; only the producer asks
//	SINGLE_ACTIVE             true: the queues have x-single-active-consumer
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API; only consumers ask
//	HTTP_ADDRESS              where a consumer answers the readiness probe; default :8080
package main
