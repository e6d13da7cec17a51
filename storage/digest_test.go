package storage

import (
	"reflect"
	"testing"
)

// TestFingerprintCoversEveryField guards against a field that is added to
// Memory and forgotten in its fingerprint.
func TestFingerprintCoversEveryField(t *testing.T) {
	unseen := map[string]bool{
		"Scope": true, "Redactions": true, "CreatedAt": true, "UpdatedAt": true, "Version": true,
	}
	empty := new(Memory).Fingerprint()
	var vary func(prefix string, at func(*Memory) reflect.Value)
	vary = func(prefix string, at func(*Memory) reflect.Value) {
		kind := at(new(Memory)).Type()
		for i := range kind.NumField() {
			name := prefix + kind.Field(i).Name
			field := func(m *Memory) reflect.Value { return at(m).Field(i) }
			if kind.Field(i).Type == reflect.TypeFor[Provenance]() {
				vary(name+".", field)
				continue
			}
			m := new(Memory)
			switch f := field(m); f.Kind() {
			case reflect.String:
				f.SetString("x")
			case reflect.Int, reflect.Int64:
				f.SetInt(7)
			case reflect.Uint64:
				f.SetUint(7)
			case reflect.Float64:
				f.SetFloat(.5)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"x"}))
			}
			if changed := m.Fingerprint() != empty; changed == unseen[name] {
				t.Errorf("%s: changes the fingerprint: %v", name, changed)
			}
		}
	}
	vary("", func(m *Memory) reflect.Value { return reflect.ValueOf(m).Elem() })
}

// TestFingerprintIsStable guards the value, which stores keep on disk.
func TestFingerprintIsStable(t *testing.T) {
	m := Memory{ID: "a.0", Kind: KindEpisode, Text: "text", Tags: []string{"t"}, Trust: 1, EventTime: 5}
	if got, want := m.Fingerprint(), uint64(16218985672894914091); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

func TestDigestIgnoresOrder(t *testing.T) {
	a, b := &Memory{ID: "a"}, &Memory{ID: "b"}
	var one, two Digest
	one.Add(a)
	one.Add(b)
	two.Add(b)
	two.Add(a)
	if one != two {
		t.Errorf("got %v, want %v", two, one)
	}
	one.Remove(a)
	one.Remove(b)
	if one != (Digest{}) {
		t.Errorf("got %v, want none", one)
	}
}
