// Franz processes the events of orders, each order's in their order, in as many pods as one likes. They are the records of a Kafka topic,
// and an order's id is the key of its records. The topic's partitions are those of the workload: idalloc decides which pod consumes which.
//
//	franz produce N     writes N events
//	franz consume       consumes the partitions of this pod until SIGTERM
//
// What to copy from it is Consumer.Work in consumer.go, and its call in main.go.
//
//	KAFKA_BROKERS             the brokers; default 127.0.0.1:9092
//	TOPIC, GROUP              default orders and workers
//	TOPICS_FILE               a file with several topics, a name and numbers of partitions in each line; default: TOPIC alone
//	PARTITIONS                how many partitions the producer gives the topic if it is not there; a consumer knows that by itself
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API; only consumers ask
package main
