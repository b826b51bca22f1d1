package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sluicestream/sluice/internal/services"
)

const kafkaUsage = `usage: kafka start [-set NAME=VALUE]… DIR [PORT]
                                  start a broker, print its address; where one runs, print its
                                  (no PORT or 0: the one used last in DIR, else a free one)
       kafka stop|kill DIR        end it cleanly, or by SIGKILL; start brings it back with its data
       kafka pause|resume DIR     stop it where it is, and let it go on
       kafka pid|address DIR      print its process or its address
       kafka topics|groups|configs|transactions|consume|produce DIR ARGUMENTS…
                                  one of Kafka's own tools, such as: topics DIR --list
       kafka jars                 fetch the jars, print their folder

Needs Java 17 or newer, and once mvn. Jars are in SLUICE_KAFKA_JARS, or the user's cache folder.
`

type broker struct{ *services.Broker }

func (b broker) address() string { return b.Addr() }

func kafka() service {
	tools := map[string]func(context.Context, server, []string) error{}
	for name, class := range map[string]string{
		"topics": services.TopicsTool, "groups": services.GroupsTool, "configs": services.ConfigsTool,
		"transactions": services.TransactionsTool, "consume": services.ConsumeTool, "produce": services.ProduceTool,
	} {
		tools[name] = func(ctx context.Context, s server, arguments []string) error {
			cmd := s.(broker).ToolCommand(ctx, class, arguments...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			return cmd.Run()
		}
	}
	return service{
		usage: kafkaUsage,
		tools: tools,
		start: func(o startOptions) (server, error) {
			b, err := services.StartKafka(services.KafkaOptions{Folder: o.folder, Port: o.port, Properties: o.settings, Detached: true})
			return broker{b}, err
		},
		open: func(folder string) (server, error) {
			b, err := services.OpenKafka(folder)
			if b == nil {
				return nil, err
			}
			return broker{b}, err
		},
		alone: map[string]func() error{"jars": func() error {
			folder, err := services.KafkaJars()
			if err == nil {
				fmt.Println(folder)
			}
			return err
		}},
	}
}
