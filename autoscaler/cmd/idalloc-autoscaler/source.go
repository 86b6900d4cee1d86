package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc/autoscaler/internal/loop"
	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/kafka"
	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/autoscaler/internal/source/rabbitmq"
	"github.com/idalloc/idalloc/autoscaler/internal/source/topics"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/internal/cli"
)

// sources holds the flags for the source of loads.
type sources struct {
	kind, address string
	topics        string
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
	f.StringVar(&o.topics, "topics-file", "", "lines such as orders 0-47; "+topics.Placeholder+" is the name then")
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

// reader reads one topic. Without a list of topics, the name is empty.
type reader = func(ctx context.Context, topic string) (monitor.Reading, error)

// source returns the source that the flags select.
func (o *sources) source() (loop.Source, error) {
	kinds := map[string]func() (reader, error){"prometheus": o.fromPrometheus, "rabbitmq": o.fromRabbitMQ, "kafka": o.fromKafka}
	build, ok := kinds[o.kind]
	if !ok {
		return nil, cli.Usagef("--source %q: use prometheus, rabbitmq or kafka", o.kind)
	}
	read, err := build()
	if err != nil {
		return nil, err
	}
	if o.topics == "" {
		return single(read), nil
	}
	return topics.Source{Path: o.topics, Topic: read}, nil
}

// single is the source if there is no list of topics.
type single reader

// Read implements loop.Source.
func (s single) Read(ctx context.Context) (monitor.Reading, error) { return s(ctx, "") }

// named checks that a flag's value contains the placeholder for a topic's name if there is a list of topics, and only then.
func (o *sources) named(flag, value string) error {
	switch has := strings.Contains(value, topics.Placeholder); {
	case has && o.topics == "":
		return cli.Usagef("--%s has %s, and no list says what that is: add --topics-file", flag, topics.Placeholder)
	case !has && o.topics != "":
		return cli.Usagef("--%s: write %s where the name of a topic of --topics-file goes", flag, topics.Placeholder)
	}
	return nil
}

func fill(text, topic string) string { return strings.ReplaceAll(text, topics.Placeholder, topic) }

func (o *sources) server() (web.Server, error) {
	address, err := web.Parse(o.address)
	if err != nil {
		return web.Server{}, cli.Usagef("--source-url: %w", err)
	}
	return o.access.server(address)
}

func (o *sources) fromPrometheus() (reader, error) {
	if strings.TrimSpace(o.prometheus.Query) == "" {
		return nil, cli.Usagef("--source prometheus needs --prometheus-query")
	}
	return o.asked("prometheus-query", o.prometheus.Query, func(ctx context.Context, server web.Server, query string) (monitor.Reading, error) {
		one := o.prometheus
		one.Server, one.Now, one.Query = server, time.Now, query
		return one.Read(ctx)
	})
}

func (o *sources) fromRabbitMQ() (reader, error) {
	if o.rabbitmq.Prefix == "" {
		return nil, cli.Usagef("--source rabbitmq needs --rabbitmq-prefix: what stands before the number in a queue's name")
	}
	return o.asked("rabbitmq-prefix", o.rabbitmq.Prefix, func(ctx context.Context, server web.Server, prefix string) (monitor.Reading, error) {
		one := o.rabbitmq
		one.Server, one.Now, one.Prefix = server, time.Now, prefix
		return one.Read(ctx)
	})
}

// asked returns a source that queries the server of --source-url with the text of a flag. In that text, the topic replaces the placeholder.
func (o *sources) asked(flag, text string, read func(context.Context, web.Server, string) (monitor.Reading, error)) (reader, error) {
	server, err := o.server()
	return func(ctx context.Context, topic string) (monitor.Reading, error) {
		return read(ctx, server, fill(text, topic))
	}, cmp.Or(err, o.named(flag, text))
}

// fromKafka returns the source kafka. Its client connects at the first request.
func (o *sources) fromKafka() (reader, error) {
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
	if err := cmp.Or(err, o.named("kafka-topic", o.kafka.Topic)); err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(o.brokers...), kgo.ClientID("idalloc-autoscaler"))...)
	if err != nil {
		return nil, cli.Usagef("--kafka-brokers: %w", err)
	}
	o.kafka.Admin, o.kafka.Now = kadm.NewClient(client), time.Now
	return func(ctx context.Context, topic string) (monitor.Reading, error) {
		one := o.kafka
		one.Topic = fill(one.Topic, topic)
		return one.Read(ctx)
	}, nil
}

// dial returns the options to connect and log in to the brokers.
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
