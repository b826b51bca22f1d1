package main

import (
	"context"
	"os"

	"github.com/sluicestream/sluice/internal/services"
)

const postgresUsage = `usage: postgres start [-set NAME=VALUE]… DIR [PORT]
                                  start a server, print its URL; where one runs, print its
                                  (no PORT or 0: the one used last in DIR, else a free one)
       postgres stop|kill DIR     end it cleanly, or by SIGKILL; start brings it back with its data
       postgres pause|resume DIR  stop it where it is, and let it go on
       postgres pid|address DIR   print its process or its URL
       postgres psql DIR ARGUMENTS…

Needs PostgreSQL's server programs: those in SLUICE_POSTGRES_BIN, or the newest of Debian's.
Where root starts it, it runs as the user postgres, who has to be able to get to DIR.
`

type database struct{ *services.Database }

func (d database) address() string { return d.URL("") }

func postgres() service {
	return service{
		usage: postgresUsage,
		start: func(o startOptions) (server, error) {
			d, err := services.StartPostgres(services.PostgresOptions{Folder: o.folder, Port: o.port, Settings: o.settings, Detached: true})
			return database{d}, err
		},
		open: func(folder string) (server, error) {
			d, err := services.OpenPostgres(folder)
			if d == nil {
				return nil, err
			}
			return database{d}, err
		},
		tools: map[string]func(context.Context, server, []string) error{
			"psql": func(ctx context.Context, s server, arguments []string) error {
				cmd := s.(database).ClientCommand(ctx, arguments...)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
				return cmd.Run()
			},
		},
	}
}
