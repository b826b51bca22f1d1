package brokers

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicestream/sluice/codec"
	"github.com/sluicestream/sluice/codec/registry"
	"github.com/sluicestream/sluice/codec/registry/registrytest"
	"github.com/sluicestream/sluice/internal/services"
)

// secrets are what no output may hold, in each form that it could have there.
type secrets map[string]string

func (s secrets) add(name, secret string) string {
	b := []byte(secret)
	for form, text := range map[string]string{
		"as it is": secret, "in base64": base64.StdEncoding.EncodeToString(b), "in base64 for URLs": base64.RawURLEncoding.EncodeToString(b),
		"in hex": hex.EncodeToString(b), "as in a URL": url.QueryEscape(secret), "quoted": strings.Trim(fmt.Sprintf("%q", secret), `"`),
	} {
		s[name+" "+form] = text
	}
	return secret
}

// look looks for the secrets in what somebody could read.
func (s secrets) look(t *testing.T, where, text string) {
	t.Helper()
	if text == "" {
		t.Errorf("%s is empty: nothing was looked at", where)
	}
	for name, secret := range s {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds %s:\n%s", where, name, tail(text))
		}
	}
}

// TestNoSecrets: nothing that a job prints, serves or stores holds a password, a
// token, or a URL with one, whether all is well or nothing.
func TestNoSecrets(t *testing.T) {
	hidden := secrets{}
	password := hidden.add("the password of Kafka", "kafkaPassword7")
	database := hidden.add("the password of PostgreSQL", "pg/Pass word+8&9")
	schemas := hidden.add("the registry's password", "registry:Pass@word9")
	bearer := hidden.add("the registry's token", "registry-token-4711")
	encode := base64.RawURLEncoding.EncodeToString
	jws := hidden.add("the token of Kafka", encode([]byte(`{"alg":"none"}`))+"."+
		encode(fmt.Appendf(nil, `{"sub":"alice","iat":%d,"exp":%d}`, time.Now().Unix(), time.Now().Add(time.Hour).Unix()))+".")

	b := services.Kafka(t, services.KafkaOptions{Users: map[string]string{"alice": password}, Listeners: []services.Listener{{Name: "SASL", Protocol: services.SASLPlaintext}}})
	s := newShop(t, b.Addr(), nil)
	d := registrytest.Start(t)
	pg := databaseOf(t, database)
	withPassword := func(address, user, password string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(user, password)
		return u.String()
	}
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	right := map[string]string{
		"SAFE_NAME": s.name, "SAFE_TOKEN": bearer, "SAFE_REGISTRY": d.URL, "SAFE_KAFKA": b.AddrOf("SASL"), "SAFE_JWS": jws,
		"SLUICE_REGISTRY": withPassword(d.URL, "ann", schemas), "SLUICE_POSTGRES": pg,
		"SLUICE_KAFKA": b.AddrOf("SASL"), "SLUICE_KAFKA_SASL": "SCRAM-SHA-512", "SLUICE_KAFKA_USER": "alice", "SLUICE_KAFKA_PASSWORD_FILE": file,
		"SLUICE_STORE": s.store, "SLUICE_VOLATILE": "true",
	}
	with := func(changes map[string]string) (env []string) {
		for name, value := range right {
			if other, ok := changes[name]; ok {
				value = other
			}
			env = append(env, name+"="+value)
		}
		for name, value := range changes {
			if _, ok := right[name]; !ok {
				env = append(env, name+"="+value)
			}
		}
		return env
	}

	// All is well: it runs, serves, and stores.
	type Order struct {
		User  string
		Cents int64
	}
	schema, err := registry.New(registry.URLs(d.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	value, err := codec.For(codec.Avro[Order](codec.Registered(schema)), codec.Use{Topic: s.topic("orders")}).NewEncoder()(nil, &Order{"ann", 5})
	if err != nil {
		t.Fatal(err)
	}
	broken := append([]byte{0, 0, 0, 0, 99}, value[5:]...)
	for _, v := range [][]byte{value, broken} {
		if err := s.client.ProduceSync(t.Context(), &kgo.Record{Topic: s.topic("orders"), Value: v}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	p := launch(t, with(nil), "safe", "run", "--json", "--listen", address)
	p.must(t, "committed", 1)
	var served string
	s.eventually("deliveries are made", func() bool {
		served = get(t, "http://"+address+"/metrics")
		return strings.Contains(served, `sluice_sink_pending_deliveries{job_name="`+s.name+`",sink="table"} 0`) &&
			strings.Contains(served, `sluice_sink_pending_deliveries{job_name="`+s.name+`",sink="totals"} 0`) && p.records() == 2
	})
	for _, path := range []string{"/healthz", "/readyz", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		served += get(t, "http://"+address+path)
	}
	hidden.look(t, "what the job serves", served)
	status := launch(t, with(nil), "safe", "status")
	status.wait(t)
	hidden.look(t, "what status prints of a job that runs", status.said())
	hidden.look(t, "the store of a job that runs", stored(t, s.store))
	p.signal(syscall.SIGTERM)
	if code := p.wait(t); code != 0 {
		t.Errorf("the job ended with %d:\n%s", code, tail(p.said()))
	}
	hidden.look(t, "what the job prints with --json", p.said())
	for _, args := range [][]string{{"describe"}, {"describe", "--json"}, {"run", "--print-settings"}, {"run", "--print-settings", "--json"}, {"status"}, {"status", "--json"}} {
		p := launch(t, with(nil), "safe", args...)
		if code := p.wait(t); code != 0 {
			t.Errorf("%v ended with %d:\n%s", args, code, tail(p.said()))
		}
		hidden.look(t, fmt.Sprint(args), p.said())
	}
	hidden.look(t, "the store", stored(t, s.store))
	hidden.look(t, "the topics", topicsOf(t, s.client, s.name))

	// settings are those of Kafka in a file, whose lines stand behind the protocol.
	settings := func(lines string) map[string]string {
		path := filepath.Join(t.TempDir(), "client.properties")
		if err := os.WriteFile(path, []byte("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"+lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return map[string]string{"SLUICE_KAFKA_CONFIG": path, "SLUICE_KAFKA_SASL": "", "SLUICE_KAFKA_USER": "", "SLUICE_KAFKA_PASSWORD_FILE": ""}
	}
	inFile := hidden.add("a password in a file", "inAFile8")
	login := "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=\"alice\""

	// Nothing is well: each start ends, and says why.
	nowhere := "127.0.0.1:9" // which nobody listens at
	for what, changes := range map[string]map[string]string{
		"a wrong password of Kafka":     {"SLUICE_KAFKA_PASSWORD_FILE": "", "SLUICE_KAFKA_PASSWORD": hidden.add("another password", "wrongPassword6")},
		"a file that isn't there":       {"SLUICE_KAFKA_PASSWORD_FILE": file + "2"},
		"a mechanism that isn't there":  {"SLUICE_KAFKA_SASL": "NTLM", "SLUICE_KAFKA_PASSWORD": password},
		"a wrong password in a file":    settings(login + " password=\"" + inFile + "\";\n"),
		"a file whose login is broken":  settings(login + "\n  password=\"" + inFile + "\";\n  " + inFile + "\n"),
		"a token that has run out":      {"SAFE_JWS": hidden.add("another token", encode([]byte(`{"alg":"none"}`))+"."+encode([]byte(`{"sub":"alice","iat":1,"exp":2}`))+".")},
		"no database":                   {"SLUICE_POSTGRES": "postgres://clerk:" + url.QueryEscape(database) + "@" + nowhere + "/shop"},
		"no address of a database":      {"SLUICE_POSTGRES": "postgres://clerk:" + database + "@:::/%%"},
		"words instead of an address":   {"SLUICE_POSTGRES": "host=127.0.0.1 port=9 user=clerk password='" + database + "'"},
		"no registry":                   {"SAFE_REGISTRY": "http://" + nowhere, "SLUICE_REGISTRY": withPassword("http://"+nowhere, "ann", schemas)},
		"no URL of a registry":          {"SLUICE_REGISTRY": "http://ann:" + schemas + "@:::/%%"},
		"a registry's URL with a query": {"SLUICE_REGISTRY": d.URL + "?token=" + url.QueryEscape(schemas)},
	} {
		t.Run(what, func(t *testing.T) {
			changes["SAFE_NAME"] = services.Unique("safe")
			changes["SLUICE_STORE"] = filepath.Join(t.TempDir(), "store")
			for _, topic := range []string{"-orders"} {
				s.eventually("a topic is made", func() bool {
					_, err := s.admin.CreateTopic(t.Context(), 1, 1, nil, changes["SAFE_NAME"]+topic)
					return err == nil
				})
			}
			for _, args := range [][]string{{"run", "--listen="}, {"run", "--json", "--listen="}, {"describe"}} {
				p := launch(t, with(changes), "safe", args...)
				if code := p.wait(t); args[0] == "run" && code != 1 {
					t.Errorf("%v ended with %d:\n%s", args, code, tail(p.said()))
				}
				hidden.look(t, fmt.Sprint(args), p.said())
			}
			if _, err := os.Stat(changes["SLUICE_STORE"]); err == nil {
				hidden.look(t, "the store", stored(t, changes["SLUICE_STORE"]))
			}
		})
	}
}

// databaseOf is the address of a database of its own, with a user's password in it.
func databaseOf(t *testing.T, password string) string {
	t.Helper()
	name := services.Unique("safe")
	d := database(t)
	address, err := d.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	user := name + "_clerk"
	for _, sql := range []string{
		"create role " + user + " login password '" + password + "'",
		"grant create, usage on schema public to " + user,
	} {
		if _, err := d.Run(t.Context(), strings.Trim(u.Path, "/"), sql); err != nil {
			t.Fatal(err)
		}
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// get is an answer's body.
func get(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		return "" // not yet
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body) + " "
}

// stored is all that a store holds: names and bytes.
func stored(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // gone meanwhile
		}
		content, _ := os.ReadFile(path)
		fmt.Fprintf(&all, "%s\n%s\n", path, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// topicsOf is all that the topics of a job hold, the one of its progress too.
func topicsOf(t *testing.T, client *kgo.Client, job string) string {
	t.Helper()
	names := []string{job + "-totals", job + "-dead", job + ".sluice"}
	reader, err := kgo.NewClient(kgo.SeedBrokers(client.OptValue(kgo.SeedBrokers).([]string)...), kgo.ConsumeTopics(names...), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var all strings.Builder
	seen := map[string]bool{}
	for len(seen) < len(names) {
		fetches := reader.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen[r.Topic] = true
			fmt.Fprintf(&all, "%s %s %s %v\n", r.Topic, r.Key, r.Value, r.Headers)
		})
	}
	return all.String()
}
