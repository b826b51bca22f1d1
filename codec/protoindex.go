package codec

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// maxIndexes bounds how deep a message's definition stands in others.
const maxIndexes = 100

// indexesOf is a message's place in its file: the index of the message around it
// all, then that of each within the last. The entries of maps, which are messages
// of a compiler's making, don't count.
func indexesOf(m protoreflect.MessageDescriptor) (path []int) {
	for d := protoreflect.Descriptor(m); ; {
		var among protoreflect.MessageDescriptors
		parent := d.Parent()
		if p, ok := parent.(protoreflect.MessageDescriptor); ok {
			among = p.Messages()
		} else {
			among = d.ParentFile().Messages()
		}
		index := 0
		for i := range d.Index() {
			if !among.Get(i).IsMapEntry() {
				index++
			}
		}
		path = append(path, index)
		if _, ok := parent.(protoreflect.MessageDescriptor); !ok {
			slices.Reverse(path)
			return path
		}
		d = parent
	}
}

// appendIndexes appends a message's place as frames have it: how many indexes
// there are, and each, as zig-zag varints; of the first message in a file, 0
// alone.
func appendIndexes(dst []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(path)))
	for _, i := range path {
		dst = binary.AppendVarint(dst, int64(i))
	}
	return dst
}

// readIndexes reads a message's place, and how many bytes it takes.
func readIndexes(src []byte) (path []int, size int, err error) {
	n, size := binary.Varint(src)
	switch {
	case size <= 0:
		return nil, 0, errors.New("the message's place in its file is cut short")
	case n == 0:
		return []int{0}, size, nil
	case n < 0 || n > maxIndexes:
		return nil, 0, fmt.Errorf("the message's place in its file: expected up to %d indexes, found %d", maxIndexes, n)
	}
	for range n {
		i, width := binary.Varint(src[size:])
		if width <= 0 || i < 0 || i > maxMessages {
			return nil, 0, errors.New("the message's place in its file is cut short, or has an index that can't be")
		}
		path = append(path, int(i))
		size += width
	}
	return path, size, nil
}

// messageNames are the full names of a file's messages by their places, as
// appendIndexes writes them.
type messageNames map[string]string

// maxMessages bounds how many messages a file has.
const maxMessages = 10_000

// messagesOf finds the messages of a registered schema: the text of a .proto
// file, or its descriptor in base64.
func messagesOf(text string) messageNames {
	if names := messagesInText(text); len(names) > 0 {
		return names
	}
	names := messageNames{}
	var file descriptorpb.FileDescriptorProto
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && proto.Unmarshal(raw, &file) == nil {
		names.add(file.GetPackage(), nil, file.GetMessageType())
	}
	return names
}

func (names messageNames) add(around string, path []int, messages []*descriptorpb.DescriptorProto) {
	index := 0
	for _, m := range messages {
		if m.GetOptions().GetMapEntry() || len(path) == maxIndexes || len(names) == maxMessages {
			continue
		}
		here := append(slices.Clone(path), index)
		index++
		name := strings.TrimPrefix(around+"."+m.GetName(), ".")
		names[string(appendIndexes(nil, here))] = name
		names.add(name, here, m.GetNestedType())
	}
}

// protoScope is what a pair of braces holds: a message, or anything else, which
// counts as part of the message around it.
type protoScope struct {
	name  string
	path  []int
	inner int // messages so far
}

// messagesInText finds the definitions of messages in the text of a .proto file,
// of which it needs to know no more than words, strings, comments and braces.
func messagesInText(text string) messageNames {
	names := messageNames{}
	scopes := []*protoScope{{}}
	var statement []string // since the last brace or semicolon
	for token := range protoTokens(text) {
		around := scopes[len(scopes)-1]
		switch token {
		case ";":
			if len(statement) == 2 && statement[0] == "package" && len(scopes) == 1 {
				around.name = statement[1]
			}
		case "{":
			name := definedMessage(statement)
			if len(scopes) > maxIndexes || len(names) == maxMessages {
				return names
			}
			if name == "" {
				scopes = append(scopes, around)
				break
			}
			m := &protoScope{name: strings.TrimPrefix(around.name+"."+name, "."), path: append(slices.Clone(around.path), around.inner)}
			around.inner++
			names[string(appendIndexes(nil, m.path))] = m.name
			scopes = append(scopes, m)
		case "}":
			if len(scopes) > 1 {
				scopes = scopes[:len(scopes)-1]
			}
		default:
			statement = append(statement, token)
			continue
		}
		statement = statement[:0]
	}
	return names
}

// definedMessage is the name of the message that a statement before a brace
// defines, or "".
func definedMessage(statement []string) string {
	if len(statement) == 2 && statement[0] == "message" {
		return statement[1]
	}
	// optional group Name = 1 [options] {
	for i := range min(2, len(statement)) {
		if statement[i] == "group" && len(statement) >= i+4 && statement[i+2] == "=" {
			return statement[i+1]
		}
	}
	return ""
}

// protoTokens yields the words and signs of a .proto file. Strings come as one
// sign.
func protoTokens(text string) func(yield func(string) bool) {
	word := func(c byte) bool {
		return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			c, end := text[i], i+1
			switch {
			case c == ' ' || c == '\t' || c == '\r' || c == '\n':
				i = end
				continue
			case strings.HasPrefix(text[i:], "//"):
				i = after(text, i, "\n")
				continue
			case strings.HasPrefix(text[i:], "/*"):
				i = after(text, i+2, "*/")
				continue
			case c == '"' || c == '\'':
				for end < len(text) && text[end] != c && text[end] != '\n' {
					if text[end] == '\\' {
						end++
					}
					end++
				}
				i = end + 1
				if !yield(`"`) {
					return
				}
				continue
			case word(c):
				for end < len(text) && word(text[end]) {
					end++
				}
			}
			if !yield(text[i:end]) {
				return
			}
			i = end
		}
	}
}

// after is the place behind the next mark, or the end.
func after(text string, from int, mark string) int {
	if i := strings.Index(text[from:], mark); i >= 0 {
		return from + i + len(mark)
	}
	return len(text)
}
