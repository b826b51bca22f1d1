package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Memory is a store in memory, for tests. It lasts as long as the value does,
// so a test that crashes a job and starts it again keeps the Memory.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	names   []string // of the objects, in order
}

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string][]byte{}} }

// String implements [Store].
func (m *Memory) String() string { return "memory" }

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, name string, data []byte) error {
	if err := begin(ctx, "create", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		return fmt.Errorf("create %s: %w", name, ErrExists)
	}
	m.put(name, append([]byte{}, data...))
	return nil
}

// put is called with the lock held.
func (m *Memory) put(name string, data []byte) {
	if _, ok := m.objects[name]; !ok {
		i, _ := slices.BinarySearch(m.names, name)
		m.names = slices.Insert(m.names, i, name)
	}
	m.objects[name] = data
}

// Upload implements [Store].
func (m *Memory) Upload(ctx context.Context, name string) (Upload, error) {
	if err := begin(ctx, "upload", name); err != nil {
		return nil, err
	}
	return &memoryUpload{store: m, name: name}, nil
}

type memoryUpload struct {
	store *Memory
	name  string
	data  bytes.Buffer
	ended bool
}

func (u *memoryUpload) Write(p []byte) (int, error) {
	if u.ended {
		return 0, fmt.Errorf("upload %s: %w", u.name, errEnded)
	}
	return u.data.Write(p)
}

func (u *memoryUpload) Commit(ctx context.Context) error {
	if u.ended {
		return fmt.Errorf("upload %s: %w", u.name, errEnded)
	}
	u.ended = true
	return u.store.Create(ctx, u.name, u.data.Bytes())
}

func (u *memoryUpload) Abort() { u.ended = true }

// Read implements [Store].
func (m *Memory) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	data, err := m.get(ctx, "read", name)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(name, int64(len(data)), limit)
	}
	return append([]byte{}, data...), nil
}

// Open implements [Store].
func (m *Memory) Open(ctx context.Context, name string) (Object, error) {
	data, err := m.get(ctx, "open", name)
	if err != nil {
		return nil, err
	}
	return memoryObject{bytes.NewReader(data)}, nil
}

type memoryObject struct{ *bytes.Reader }

func (memoryObject) Close() error { return nil }

func (m *Memory) get(ctx context.Context, operation, name string) ([]byte, error) {
	if err := begin(ctx, operation, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s %s: %w", operation, name, ErrNotFound)
	}
	return data, nil
}

// Exists implements [Store].
func (m *Memory) Exists(ctx context.Context, name string) (bool, error) {
	_, err := m.get(ctx, "look for", name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, prefix, after string, limit int) ([]Listed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, _, err := splitPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i, found := slices.BinarySearch(m.names, max(prefix, after))
	if found && after >= prefix {
		i++
	}
	var listed []Listed
	for ; i < len(m.names) && len(listed) < limit && strings.HasPrefix(m.names[i], prefix); i++ {
		listed = append(listed, Listed{m.names[i], int64(len(m.objects[m.names[i]]))})
	}
	return listed, nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, name string) error {
	if err := begin(ctx, "delete", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, found := slices.BinarySearch(m.names, name); found {
		m.names = slices.Delete(m.names, i, i+1)
		delete(m.objects, name)
	}
	return nil
}

// Replace implements [Store].
func (m *Memory) Replace(ctx context.Context, name string, data []byte) error {
	if err := begin(ctx, "replace", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, append([]byte{}, data...))
	return nil
}

// errEnded says that an upload was used after its end.
var errEnded = errors.New("the upload has ended")

// begin is what every call starts with.
func begin(ctx context.Context, operation, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", operation, name, err)
	}
	if err := CheckName(name); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

func tooLarge(name string, size, limit int64) error {
	return fmt.Errorf("read %s: %w: it has %d bytes, the limit is %d", name, ErrTooLarge, size, limit)
}
