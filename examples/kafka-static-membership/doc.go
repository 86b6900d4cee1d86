// Kafka-static-membership consumes a topic of Kafka as a static member of a consumer group. The name of the member, the group instance id,
// is made of the workload's name and the id of the pod. So the pod that replaces another one in a rolling update is the same member to
// the broker, which gives it the same partitions without a rebalance.
//
// What to copy from it is Consumer.Work in consumer.go, and its call in main.go.
//
//	KAFKA_BROKERS             addresses of brokers, separated by commas; default 127.0.0.1:9092
//	TOPIC, GROUP              what to consume, and as which group; default orders, workers
//	SESSION_TIMEOUT           how long the broker waits for a member that is gone; default 45s
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
package main
