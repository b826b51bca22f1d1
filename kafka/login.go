package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// loginModules are the classes of Java by which sasl.jaas.config logs in, without
// their package, and the mechanisms that they are for.
var loginModules = map[string][]string{
	"PlainLoginModule": {"PLAIN"},
	"ScramLoginModule": {"SCRAM-SHA-256", "SCRAM-SHA-512"},
}

// loginFlags are the words of which one follows the class.
var loginFlags = []string{"required", "requisite", "sufficient", "optional"}

// parseLogin reads the user and the password from what sasl.jaas.config is for a
// mechanism: `CLASS required username="USER" password="PASSWORD";`. Its errors hold
// nothing of the text.
func parseLogin(mechanism, text string) (user, password string, err error) {
	words, err := loginWords(text)
	if err != nil {
		return "", "", err
	}
	if len(words) < 2 || !slices.Contains(loginFlags, strings.ToLower(words[1])) || words[len(words)-1] != ";" {
		return "", "", errors.New(`expected CLASS required username="USER" password="PASSWORD";`)
	}
	class := words[0][strings.LastIndexByte(words[0], '.')+1:]
	if !slices.Contains(loginModules[class], mechanism) {
		return "", "", fmt.Errorf("expected the class PlainLoginModule for PLAIN or ScramLoginModule for SCRAM, and the mechanism is %s", mechanism)
	}
	given := map[string]string{}
	for options := words[2 : len(words)-1]; len(options) > 0; options = options[3:] {
		if len(options) < 3 || options[1] != "=" {
			return "", "", errors.New(`expected name="value" behind the class, and a semicolon at the end alone`)
		}
		name := options[0]
		if _, twice := given[name]; twice || name != "username" && name != "password" {
			return "", "", errors.New("expected username and password, each once, and no other option")
		}
		given[name] = options[2]
	}
	if given["username"] == "" || given["password"] == "" {
		return "", "", errors.New("expected a username and a password")
	}
	return given["username"], given["password"], nil
}

// loginWords parts a login into its words: names, what stands in quotes, = and ;.
func loginWords(text string) (words []string, err error) {
	const breaks = " \t\r\n\f"
	for text = strings.TrimLeft(text, breaks); text != ""; text = strings.TrimLeft(text, breaks) {
		switch c := text[0]; c {
		case '=', ';':
			words, text = append(words, text[:1]), text[1:]
		case '"', '\'':
			var word string
			if word, text, err = quotedWord(text[1:], c); err != nil {
				return nil, err
			}
			words = append(words, word)
		default:
			end := strings.IndexAny(text, breaks+`=;"'`)
			if end < 0 {
				end = len(text)
			}
			words, text = append(words, text[:end]), text[end:]
		}
	}
	return words, nil
}

// quotedWord reads up to the quote that ends a word; a backslash escapes what
// follows it.
func quotedWord(text string, quote byte) (word, rest string, err error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return out.String(), text[i+1:], nil
		case text[i] == '\\' && i+1 < len(text):
			i++
			if strings.ContainsRune("abfnrtv01234567", rune(text[i])) {
				return "", "", errors.New(`an escape in quotes, such as \n or \101: only quotes and backslashes are escaped in a user or a password`)
			}
			out.WriteByte(text[i])
		default:
			out.WriteByte(text[i])
		}
	}
	return "", "", errors.New("quotes that don't end")
}
