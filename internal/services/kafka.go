package services

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// KafkaOptions say how a broker is.
type KafkaOptions struct {
	// Folder is where the broker keeps everything; one that holds a broker is
	// started again with its data and its ports. Defaults to a new one among the
	// temporary files, which Close removes.
	Folder string
	// Port is the plain listener's. Defaults to the one used last in Folder, else
	// to a free one.
	Port int
	// Properties are the broker's, and win over those that are set here.
	Properties map[string]string
	// Listeners are further addresses. Defaults to none.
	Listeners []Listener
	// Users are passwords by name, of letters and digits, for PLAIN and SCRAM.
	// SCRAM knows those that the folder was made with.
	Users map[string]string
	// ACLs has the broker refuse whatever no ACL allows, but for clients of the
	// plain listener, who may do everything: ACLs are made through it.
	ACLs bool
	// Heap is the broker's memory, as java takes it. Defaults to 512m.
	Heap string
	// Detached lets the broker outlive this process.
	Detached bool

	// brief is a broker of tests: it starts with half the work, and works at half the
	// speed once it would be warm, since the JVM optimizes less.
	brief bool
}

// Broker is a Kafka broker. Its methods may be called from several goroutines.
type Broker struct {
	server
	options   KafkaOptions
	java      string
	jars      string
	authority *Authority // nil without an encrypted listener
}

// kafkaReady is what the log says once the broker takes requests.
const kafkaReady = "Kafka Server started"

// StartKafka starts a broker, and returns when it takes requests: after 5 to 9 s
// for a new folder, 4 to 6 s for one that holds a broker. Its error is a
// *[MissingError] where there is no Kafka.
func StartKafka(o KafkaOptions) (*Broker, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	jars, err := KafkaJars()
	if err != nil {
		return nil, err
	}
	folder, err := openFolder(o.Folder, "sluice-kafka-")
	if err != nil {
		return nil, err
	}
	b := &Broker{server: server{folder: folder, detached: o.Detached, ready: kafkaReady}, options: o, java: java, jars: jars}
	if err := b.prepare(); err != nil {
		return nil, err
	}
	if err := b.Start(); err != nil {
		b.folder.remove()
		return nil, err
	}
	return b, nil
}

// OpenKafka finds the detached broker that runs in a folder; it is nil if none does.
func OpenKafka(path string) (*Broker, error) {
	folder, err := openFolder(path, "")
	if err != nil {
		return nil, err
	}
	run := folder.running(kafkaMark(folder))
	if run == nil {
		return nil, nil
	}
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	jars, err := KafkaJars()
	if err != nil {
		return nil, err
	}
	folder.ports = folder.numbers(portsFile)
	return &Broker{server: server{folder: folder, detached: true, ready: kafkaReady, run: run}, java: java, jars: jars}, nil
}

// kafkaMark is what tells the folder's broker from other processes.
func kafkaMark(f *folder) string { return f.in("server.properties") }

// prepare writes what the broker reads besides its properties.
func (b *Broker) prepare() error {
	files := map[string]string{
		"log.properties":   logging("info", "SYSTEM_OUT"),
		"tools.properties": logging("error", "SYSTEM_ERR"),
	}
	if slices.ContainsFunc(b.options.Listeners, Listener.encrypted) {
		authority, err := NewAuthority()
		if err != nil {
			return err
		}
		certificate, err := authority.Issue("broker")
		if err != nil {
			return err
		}
		b.authority = authority
		files["keystore.pem"] = string(certificate.Keystore())
		files["truststore.pem"] = string(authority.PEM())
	}
	for name, text := range files {
		if err := os.WriteFile(b.folder.in(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.MkdirAll(b.folder.in(dataFolder), 0o755)
}

// Start starts a broker that was stopped or killed, with its data, at its
// addresses. One that runs is left alone.
func (b *Broker) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runsNow() {
		return nil
	}
	if err := b.folder.claim(b.options.Port, 2+len(b.options.Listeners)); err != nil {
		return err
	}
	if err := os.WriteFile(b.folder.in("server.properties"), []byte(b.properties()), 0o644); err != nil {
		return err
	}
	if err := b.format(); err != nil {
		return err
	}
	log, err := b.folder.newLog()
	if err != nil {
		return err
	}
	defer log.Close()
	heap := b.options.Heap
	if heap == "" {
		heap = "512m"
	}
	jvm := []string{"-XX:+UseG1GC"}
	if b.options.brief {
		jvm = briefJVM
	}
	cmd := exec.Command(b.java, slices.Concat(jvm, []string{"-Xmx" + heap, "-Xshare:auto",
		"-Dlog4j2.configurationFile=" + b.folder.in("log.properties"),
		"-cp", filepath.Join(b.jars, "*"), "kafka.Kafka", b.folder.in("server.properties")})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.folder.path, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal's Ctrl-C is not for it
	run, err := spawn(cmd, !b.detached, b.folder.litter())
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	return b.await(run, b.folder.ports[0])
}

// format makes the data folder a broker's, once.
func (b *Broker) format() error {
	if _, err := os.Stat(filepath.Join(b.folder.in(dataFolder), "meta.properties")); err == nil {
		return nil
	}
	id := make([]byte, 16)
	rand.Read(id)
	id[0] &= 0x7f // a name that begins with a dash would be an option
	arguments := append([]string{"format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", b.folder.in("server.properties")},
		scramUsers(b.options.Users)...)
	out, err := b.jvm(context.Background(), "kafka.tools.StorageTool", arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make %s a broker's: %s: %w", b.folder.in(dataFolder), complaintIn(string(out)), err)
	}
	return nil
}

// briefJVM are settings of a JVM that does not run for long.
var briefJVM = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// jvm is a run of one of Kafka's own tools.
func (b *Broker) jvm(ctx context.Context, class string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.java, slices.Concat(briefJVM, []string{"-Xshare:auto", "-Xmx256m",
		"-Dlog4j2.configurationFile=" + b.folder.in("tools.properties"), "-cp", filepath.Join(b.jars, "*"), class}, arguments)...)
}

// Tool runs one of Kafka's own tools against the broker, such as
// [TopicsTool], and returns what it prints. Each is a JVM, and takes 2 to 3 s.
func (b *Broker) Tool(ctx context.Context, class string, arguments ...string) (string, error) {
	out, err := b.ToolCommand(ctx, class, arguments...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), fmt.Errorf("%s %s: %w: %s", class, strings.Join(arguments, " "), err, complaintIn(string(out)+string(exit.Stderr)))
	}
	return string(out), err
}

// ToolCommand is a run of one of Kafka's own tools, to be started.
func (b *Broker) ToolCommand(ctx context.Context, class string, arguments ...string) *exec.Cmd {
	return b.jvm(ctx, class, append([]string{"--bootstrap-server", b.Addr()}, arguments...)...)
}

// Kafka's own tools.
const (
	TopicsTool       = "org.apache.kafka.tools.TopicCommand"
	GroupsTool       = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	ConfigsTool      = "org.apache.kafka.tools.ConfigCommand"
	TransactionsTool = "org.apache.kafka.tools.TransactionsCommand"
	ConsumeTool      = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	ProduceTool      = "org.apache.kafka.tools.ConsoleProducer"
)

// Stop ends the broker cleanly.
func (b *Broker) Stop() error { return b.halt(syscall.SIGTERM) }

// Addr is the address of the plain listener.
func (b *Broker) Addr() string { return address(b.folder.ports[0]) }

// AddrOf is the address that the listener of a name listens at, whatever it
// advertises; empty if there is none of this name.
func (b *Broker) AddrOf(listener string) string {
	for i, l := range b.options.Listeners {
		if l.Name == listener {
			return address(b.folder.ports[2+i])
		}
	}
	return ""
}

// Authority vouches for the broker's certificate; nil if no listener is encrypted.
func (b *Broker) Authority() *Authority { return b.authority }

// properties are all the broker's settings, as it reads them.
func (b *Broker) properties() string {
	plain, controller := address(b.folder.ports[0]), address(b.folder.ports[1])
	listeners := []string{"PLAINTEXT://" + plain, "CONTROLLER://" + controller}
	advertised := []string{"PLAINTEXT://" + plain}
	protocols := []string{"PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"}
	all := maps.Clone(kafkaDefaults)
	for i, l := range b.options.Listeners {
		at, protocol := address(b.folder.ports[2+i]), l.Protocol
		if protocol == "" {
			protocol = Plaintext
		}
		listeners = append(listeners, l.Name+"://"+at)
		if l.Advertised != "" {
			at = l.Advertised
		}
		advertised = append(advertised, l.Name+"://"+at)
		protocols = append(protocols, l.Name+":"+string(protocol))
		maps.Copy(all, l.properties(&b.options, b.folder.in("keystore.pem"), b.folder.in("truststore.pem")))
	}
	maps.Copy(all, map[string]string{
		"listeners":                      strings.Join(listeners, ","),
		"advertised.listeners":           strings.Join(advertised, ","),
		"listener.security.protocol.map": strings.Join(protocols, ","),
		"inter.broker.listener.name":     "PLAINTEXT",
		"controller.quorum.voters":       "1@" + controller,
		"log.dirs":                       b.folder.in(dataFolder),
	})
	if b.options.ACLs {
		all["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		all["super.users"] = "User:ANONYMOUS"
	}
	maps.Copy(all, b.options.Properties)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", name, strings.ReplaceAll(all[name], `\`, `\\`))
	}
	return text.String()
}
