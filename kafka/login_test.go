package kafka

import (
	"strings"
	"testing"
)

func TestLogins(t *testing.T) {
	const plain, scram = "org.apache.kafka.common.security.plain.PlainLoginModule ", "org.apache.kafka.common.security.scram.ScramLoginModule "
	for _, c := range []struct{ mechanism, text, user, password string }{
		{"PLAIN", plain + `required username="ann" password="s3cret";`, "ann", "s3cret"},
		{"PLAIN", plain + "required\n\tusername='ann'\n\tpassword='s3 \"cr\" et' ;\n", "ann", `s3 "cr" et`},
		{"PLAIN", "PlainLoginModule Optional password=\"a=b;c\" username = ann;", "ann", "a=b;c"},
		{"SCRAM-SHA-256", scram + `required username="a\"n\\n" password="\'";`, `a"n\n`, "'"},
		{"SCRAM-SHA-512", "shaded." + scram + `required username="ann" password="s3cret";`, "ann", "s3cret"},
	} {
		user, password, err := parseLogin(c.mechanism, c.text)
		if err != nil || user != c.user || password != c.password {
			t.Errorf("%s: %q and %q, %v", c.text, user, password, err)
		}
	}
	for _, c := range []struct{ mechanism, text, says string }{
		{"PLAIN", "", "expected CLASS required"},
		{"PLAIN", plain + `required username="ann" password="s3cret"`, "expected CLASS required"},
		{"PLAIN", plain + `username="ann" password="s3cret";`, "expected CLASS required"},
		{"PLAIN", plain + `required username="ann" password="s3cret; `, "quotes that don't end"},
		{"PLAIN", scram + `required username="ann" password="s3cret";`, "PlainLoginModule for PLAIN"},
		{"SCRAM-SHA-256", plain + `required username="ann" password="s3cret";`, "the mechanism is SCRAM-SHA-256"},
		{"PLAIN", `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="s3cret";`, "expected the class"},
		{"PLAIN", plain + `required username="ann" password="s3cret" serviceName="kafka";`, "no other option"},
		{"PLAIN", plain + `required username="ann" username="s3cret";`, "each once"},
		{"PLAIN", plain + `required username="ann";`, "a username and a password"},
		{"PLAIN", plain + `required username="" password="s3cret";`, "a username and a password"},
		{"PLAIN", plain + `required username="ann" "s3cret";`, `expected name="value"`},
		{"PLAIN", plain + `required username="ann" password="s3cret"; ` + plain + `required username="bob" password="s3cret";`, `expected name="value"`},
		{"PLAIN", plain + `required username="ann" password="s3cret\n";`, "an escape in quotes"},
	} {
		_, _, err := parseLogin(c.mechanism, c.text)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, expected %q", c.text, err, c.says)
		}
	}
}
