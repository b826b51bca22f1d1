package services

// kafkaDefaults are a broker's settings that don't depend on where it is.
var kafkaDefaults = map[string]string{
	"process.roles":             "broker,controller",
	"node.id":                   "1",
	"controller.listener.names": "CONTROLLER",
	"auto.create.topics.enable": "false", // a misspelt topic is to be seen
	"num.partitions":            "1",

	// There is one broker; its own topics have few partitions, to load fast.
	"default.replication.factor":                                  "1",
	"min.insync.replicas":                                         "1",
	"offsets.topic.replication.factor":                            "1",
	"offsets.topic.num.partitions":                                "4",
	"transaction.state.log.replication.factor":                    "1",
	"transaction.state.log.min.isr":                               "1",
	"transaction.state.log.num.partitions":                        "4",
	"share.coordinator.state.topic.replication.factor":            "1",
	"share.coordinator.state.topic.min.isr":                       "1",
	"share.coordinator.state.topic.num.partitions":                "4",
	"group.initial.rebalance.delay.ms":                            "0",
	"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",

	// Records of any time stay.
	"log.retention.ms": "-1",

	// With the default of nine seconds a start after SIGKILL waits for the old
	// registration to run out.
	"broker.heartbeat.interval.ms": "250",
	"broker.session.timeout.ms":    "2000",
}

// logging is a configuration of the JVM's log.
func logging(level, target string) string {
	return `status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = ` + target + `
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
rootLogger.level = ` + level + `
rootLogger.appenderRef.out.ref = out
`
}
