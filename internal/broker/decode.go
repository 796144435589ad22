/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"bytes"
	"encoding/json"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// args reads arguments and definitions. RabbitMQ writes an empty one as [] in places.
type args topology.Args

func (a *args) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) || bytes.Equal(data, []byte(`""`)) || bytes.Equal(data, []byte("null")) {
		*a = nil
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return err
	}
	for k, v := range m {
		m[k] = withoutJSONNumbers(v)
	}
	*a = args(topology.Normalize(m))
	return nil
}

func withoutJSONNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n
		}
		f, _ := x.Float64()
		return f
	case map[string]any:
		for k, e := range x {
			x[k] = withoutJSONNumbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = withoutJSONNumbers(e)
		}
	}
	return v
}

// count is a number that the broker may leave out, or write as null or "undefined".
type count struct{ n *int64 }

func (c *count) UnmarshalJSON(data []byte) error {
	var n int64
	if json.Unmarshal(data, &n) == nil && !bytes.Equal(data, []byte("null")) {
		c.n = &n
	}
	return nil
}

// flag is true only for true: RabbitMQ writes null or "undefined" for what does not apply.
type flag bool

func (f *flag) UnmarshalJSON(data []byte) error {
	*f = flag(bytes.Equal(data, []byte("true")))
	return nil
}

// name is a string that may be left out, which differs from null: null is none.
type name struct {
	known bool
	value string
}

func (n *name) UnmarshalJSON(data []byte) error {
	n.known = true
	_ = json.Unmarshal(data, &n.value) // what is no string is none
	return nil
}
