package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory/egress"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

const (
	// How long a control plane has to answer, and how long a proxy avoids one that did not.
	dialTimeout = 2 * time.Second
	restFor     = 5 * time.Second
)

// proxies forward TCP connections to the control planes of clusters whose endpoint is this server. They are for labs
// and small sites: when the server is down, so is the endpoint. mu guards running and ended; a proxy has a lock of
// its own. Anyone who needs both takes proxies.mu first.
type proxies struct {
	kit *kit

	mu      sync.Mutex
	running map[types.NamespacedName]*proxy
	ended   bool
	serving sync.WaitGroup
}

// newProxies returns an empty set. set starts proxies, and Start ends them with the manager.
func newProxies(k *kit) *proxies {
	return &proxies{kit: k, running: map[types.NamespacedName]*proxy{}}
}

// Start implements manager.Runnable. When ctx is done it closes all listeners and connections, and waits for their
// goroutines.
func (ps *proxies) Start(ctx context.Context) error {
	<-ctx.Done()
	ps.mu.Lock()
	ps.ended = true
	for _, p := range ps.running {
		p.close()
	}
	ps.mu.Unlock()
	ps.serving.Wait()
	return nil
}

// serve forwards to the present control planes of a cluster. why says what is missing.
func (ps *proxies) serve(ctx context.Context, sc *infrav1.SlipwayCluster, own *infrav1.APIEndpoint) (why string, err error) {
	if own.Host == "" {
		return "endpointMode Appliance needs spec.controlPlaneEndpoint.host: an address of the appliance that machines reach", nil
	}
	own.Port = cmp.Or(own.Port, defaultPort)
	behind, err := ps.behind(ctx, sc)
	if err != nil {
		return "", err
	}
	if err := ps.set(client.ObjectKeyFromObject(sc), &forward{port: int(own.Port), behind: behind}); err != nil {
		return fmt.Sprintf("port %d cannot be served: another program or cluster has it", own.Port), nil
	}
	return "", nil
}

// behind returns the addresses of the control planes of a cluster, without those being deleted.
func (ps *proxies) behind(ctx context.Context, sc *infrav1.SlipwayCluster) (addresses []string, err error) {
	var sms infrav1.SlipwayMachineList
	labels := client.MatchingLabels{clusterv1.ClusterNameLabel: sc.Labels[clusterv1.ClusterNameLabel]}
	if err := ps.kit.client.List(ctx, &sms, client.InNamespace(sc.Namespace), labels, client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return nil, fmt.Errorf("list control planes: %w", err)
	}
	for i := range sms.Items {
		// A machine that is being deleted answers until it is drained and fenced. New connections should outlive that.
		if !sms.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		for _, a := range sms.Items[i].Status.Addresses {
			if a.Type == metalv1.AddressInternalIP {
				addresses = append(addresses, net.JoinHostPort(a.Address, strconv.Itoa(defaultPort)))
				break
			}
		}
	}
	// Sorted, so that the same machines are the same list at each pass.
	slices.Sort(addresses)
	return addresses, nil
}

// forward is the port of a proxy and the addresses that it forwards to.
type forward struct {
	port   int
	behind []string
}

// set starts or changes the proxy of a cluster, or ends it when f is nil. Open connections survive a change of
// addresses, but not of the port.
func (ps *proxies) set(name types.NamespacedName, f *forward) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.running[name]
	// A listener cannot change its port. Its connections end with it.
	if p != nil && (f == nil || p.port != f.port) {
		p.close()
		delete(ps.running, name)
		p = nil
	}
	// A Reconcile may still run while the manager ends. It must not open a listener that nobody closes.
	if f == nil || ps.ended {
		return nil
	}
	if p == nil {
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(f.port)))
		if err != nil {
			return err
		}
		p = &proxy{egress: ps.kit.env.Egress, port: f.port, listener: l, resting: map[string]time.Time{}, open: map[net.Conn]bool{}}
		ps.running[name] = p
		ps.serving.Go(p.serve)
		ps.kit.log.Info("endpoint served", "object", name.String(), "port", f.port)
	}
	p.mu.Lock()
	p.behind = f.behind
	p.mu.Unlock()
	return nil
}

// proxy forwards the connections to one port. mu guards the fields below it.
type proxy struct {
	egress   *egress.Policy
	port     int
	listener net.Listener
	piping   sync.WaitGroup

	mu      sync.Mutex
	behind  []string
	next    int
	resting map[string]time.Time // until when one that did not answer is left alone
	open    map[net.Conn]bool
	closed  bool
}

// serve accepts connections until close. It returns only when all of them have ended.
func (p *proxy) serve() {
	defer p.piping.Wait()
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // out of descriptors
			continue
		}
		p.piping.Go(func() { p.pipe(c) })
	}
}

// close ends the listener and all connections. serve and the goroutines of the connections then return by themselves.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Set under the lock that keep takes: a connection is either in open, or its pipe sees closed.
	p.closed = true
	_ = p.listener.Close()
	for c := range p.open {
		_ = c.Close()
	}
}

// keep records an open connection (on) or drops it, so that close can close them all. ok is false when the proxy has
// ended: then the caller closes the connection itself.
func (p *proxy) keep(c net.Conn, on bool) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !on {
		delete(p.open, c)
		return true
	}
	if p.closed {
		return false
	}
	p.open[c] = true
	return true
}

// pipe copies in both directions until both ends have closed. Each end may close its half first.
func (p *proxy) pipe(client net.Conn) {
	defer client.Close()
	if !p.keep(client, true) {
		return
	}
	defer p.keep(client, false)
	server := p.dial()
	if server == nil {
		return
	}
	defer server.Close()
	if !p.keep(server, true) {
		return
	}
	defer p.keep(server, false)
	// A kubectl exec sends nothing more and still reads: so each direction ends by itself.
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(server, client)
	_ = server.(*net.TCPConn).CloseWrite()
	back.Wait()
}

// dial connects to the next control plane that answers, and returns nil when none does. It tries those last that did
// not answer within the last 5 s.
func (p *proxy) dial() net.Conn {
	for _, address := range p.order(time.Now()) {
		// Without the lock: a control plane that is off takes the whole timeout, and other connections must go on.
		c, err := p.egress.Dialer(dialTimeout).Dial("tcp", address)
		p.mu.Lock()
		if err != nil {
			p.resting[address] = time.Now().Add(restFor)
		} else {
			delete(p.resting, address)
		}
		p.mu.Unlock()
		if err == nil {
			return c
		}
	}
	return nil
}

// order returns the addresses in the order in which a connection tries them.
func (p *proxy) order(now time.Time) (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The next connection begins with the next control plane, so that they share the load.
	p.next++
	var last []string
	for i := range p.behind {
		a := p.behind[(i+p.next)%len(p.behind)]
		if now.Before(p.resting[a]) {
			last = append(last, a)
		} else {
			all = append(all, a)
		}
	}
	return append(all, last...)
}
