package stock

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/test/kube/cluster"
)

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// Memory is the program that keeps workload clusters in memory.
type Memory struct {
	t   testing.TB
	url string
}

// Pair is a certificate and its key, PEM.
type Pair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

// Node is a machine that has come up in a workload cluster.
type Node struct {
	ProviderID   string            `json:"providerID"`
	Version      string            `json:"version"`
	Labels       map[string]string `json:"labels"`
	ControlPlane bool              `json:"controlPlane"`
	CA           Pair              `json:"ca"`   // of the cluster, for control planes
	EtcdCA       Pair              `json:"etcd"` // of etcd, for control planes
}

// StartMemory starts the program.
func StartMemory(t testing.TB) *Memory {
	t.Helper()
	p := cluster.Run(t, "capi-inmemory")
	m := &Memory{t: t}
	cluster.Until(t, time.Minute, "capi-inmemory says where it listens", func() error {
		if err := p.Ended(); err != nil {
			t.Fatalf("capi-inmemory: %v\n%s", err, p.Tail())
		}
		for line := range strings.Lines(p.Log()) {
			if strings.HasPrefix(line, "http://") && strings.HasSuffix(line, "\n") {
				m.url = strings.TrimSpace(line)
				return nil
			}
		}
		return fmt.Errorf("not yet")
	})
	return m
}

// AddCluster makes a workload cluster, and says where its API server will be.
func (m *Memory) AddCluster(ctx context.Context, name string) (host string, port int, err error) {
	var out struct {
		Host string
		Port int
	}
	err = m.call(ctx, http.MethodPut, "/clusters/"+name, nil, &out)
	return out.Host, out.Port, err
}

// AddNode says that a machine has come up.
func (m *Memory) AddNode(ctx context.Context, cluster, name string, n Node) error {
	return m.call(ctx, http.MethodPut, "/clusters/"+cluster+"/nodes/"+name, n, nil)
}

// DropNode says that a machine is off for good: what ran on it is gone. Its node stays, as in any cluster.
func (m *Memory) DropNode(ctx context.Context, cluster, name string) error {
	return m.call(ctx, http.MethodDelete, "/clusters/"+cluster+"/nodes/"+name, nil, nil)
}

func (m *Memory) call(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, method, m.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
