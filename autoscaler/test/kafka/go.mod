// The tests of the autoscaler's Kafka source are a module of its own: nobody who uses idalloc has to know of the broker that they run.
module github.com/idalloc/idalloc/autoscaler/test/kafka

go 1.26.8

replace github.com/idalloc/idalloc => ../../..

require (
	github.com/idalloc/idalloc v0.0.0-00010101000000-000000000000
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kadm v1.19.0
	github.com/twmb/franz-go/pkg/kfake v0.0.0-20260918054303-01f206a7e32c
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/twmb/franz-go/pkg/kmsg v1.15.0 // indirect
)
