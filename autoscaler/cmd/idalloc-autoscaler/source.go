package main

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/source/kafka"
	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/autoscaler/internal/source/rabbitmq"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/internal/cli"
)

// sources are the flags that say where loads are read.
type sources struct {
	kind, address string
	access        access
	prometheus    prometheus.Source
	rabbitmq      rabbitmq.Source
	kafka         kafka.Source
	brokers       []string
	measure, sasl string
	tls           bool
}

func (o *sources) bind(f *pflag.FlagSet) {
	f.StringVar(&o.kind, "source", "", "prometheus, rabbitmq or kafka; required")
	f.StringVar(&o.address, "source-url", "", "address, such as http://rabbitmq:15672")
	o.access.bind(f)
	f.StringVar(&o.prometheus.Query, "prometheus-query", "", "query with a series for each partition")
	f.StringVar(&o.prometheus.Label, "prometheus-label", "partition", "label that names the partition")
	f.StringVar(&o.prometheus.Prefix, "prometheus-prefix", "", "what stands before the number in that label")
	f.StringVar(&o.rabbitmq.Prefix, "rabbitmq-prefix", "", "what stands before the number in a queue's name")
	f.StringVar(&o.rabbitmq.VHost, "rabbitmq-vhost", "/", "virtual host of the queues")
	f.DurationVar(&o.rabbitmq.Interval, "rabbitmq-interval", rabbitmq.Interval, "RabbitMQ's collect_statistics_interval")
	f.StringSliceVar(&o.brokers, "kafka-brokers", nil, "addresses of some brokers")
	f.StringVar(&o.kafka.Topic, "kafka-topic", "", "topic with the workload's partitions")
	f.StringVar(&o.measure, "kafka-measure", "bytes", "bytes (of the log) or records (end offsets)")
	f.StringVar(&o.kafka.Group, "kafka-group", "", "consumer group, for --catch-up; only for records")
	f.BoolVar(&o.tls, "kafka-tls", false, "connect to the brokers by TLS")
	f.StringVar(&o.sasl, "kafka-sasl", "", "plain (with TLS), scram-sha-256 or scram-sha-512")
}

// source returns the source that the flags name.
func (o *sources) source() (loop.Source, error) {
	kinds := map[string]func(web.Server) (loop.Source, error){
		"prometheus": func(s web.Server) (loop.Source, error) {
			if strings.TrimSpace(o.prometheus.Query) == "" {
				return nil, cli.Usagef("--source prometheus needs --prometheus-query")
			}
			o.prometheus.Server, o.prometheus.Now = s, time.Now
			return o.prometheus, nil
		},
		"rabbitmq": func(s web.Server) (loop.Source, error) {
			if o.rabbitmq.Prefix == "" {
				return nil, cli.Usagef("--source rabbitmq needs --rabbitmq-prefix: what stands before the number in a queue's name")
			}
			o.rabbitmq.Server, o.rabbitmq.Now = s, time.Now
			return o.rabbitmq, nil
		},
	}
	if o.kind == "kafka" {
		return o.fromKafka()
	}
	build, ok := kinds[o.kind]
	if !ok {
		return nil, cli.Usagef("--source %q: use prometheus, rabbitmq or kafka", o.kind)
	}
	address, err := web.Parse(o.address)
	if err != nil {
		return nil, cli.Usagef("--source-url: %w", err)
	}
	server, err := o.access.server(address)
	if err != nil {
		return nil, err
	}
	return build(server)
}

// fromKafka returns the source kafka. Its client connects when it is asked something.
func (o *sources) fromKafka() (loop.Source, error) {
	o.kafka.Records = o.measure == "records"
	switch {
	case len(o.brokers) == 0 || o.kafka.Topic == "":
		return nil, cli.Usagef("--source kafka needs --kafka-brokers and --kafka-topic")
	case !o.kafka.Records && o.measure != "bytes":
		return nil, cli.Usagef("--kafka-measure %q: use bytes or records", o.measure)
	case !o.kafka.Records && o.kafka.Group != "":
		return nil, cli.Usagef("--kafka-group: what a group has not committed is counted in records: add --kafka-measure=records")
	}
	options, err := o.dial()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(o.brokers...), kgo.ClientID("idalloc-autoscaler"))...)
	if err != nil {
		return nil, cli.Usagef("--kafka-brokers: %w", err)
	}
	o.kafka.Admin, o.kafka.Now = kadm.NewClient(client), time.Now
	return o.kafka, nil
}

// dial returns how to connect and log in to the brokers.
func (o *sources) dial() ([]kgo.Opt, error) {
	config, err := o.access.tls()
	if err != nil {
		return nil, err
	}
	var options []kgo.Opt
	switch {
	case o.tls:
		options = append(options, kgo.DialTLSConfig(config))
	case config != nil:
		return nil, cli.Usagef("--source-ca-file and --source-cert-file are for TLS: add --kafka-tls")
	case o.sasl == "plain":
		return nil, cli.Usagef("--kafka-sasl plain sends the password as it is: add --kafka-tls, or use scram-sha-512")
	}
	if o.sasl == "" {
		return options, o.access.unused()
	}
	mechanism, err := o.access.mechanism(o.sasl)
	return append(options, kgo.SASL(mechanism)), err
}
