package bench

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/metal"
	"slipway.dev/slipway/machine/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
	"slipway.dev/slipway/test/kube/rig"
)

func cpuOf(name string) string {
	ds, _ := os.ReadDir("/proc")
	out := ""
	for _, d := range ds {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		var pid int
		var comm, st string
		fmt.Sscanf(string(b), "%d %s %s", &pid, &comm, &st)
		f := []string{}
		for i, s := 0, string(b); ; i++ {
			var w string
			n, _ := fmt.Sscan(s, &w)
			if n == 0 {
				break
			}
			f = append(f, w)
			s = s[len(w):]
			for len(s) > 0 && (s[0] == ' ' || s[0] == '\n') {
				s = s[1:]
			}
			if i > 20 {
				break
			}
		}
		if len(f) > 15 {
			u, _ := strconv.Atoi(f[13])
			v, _ := strconv.Atoi(f[14])
			if u+v > 100 {
				out += fmt.Sprintf("%s=%.1f ", comm, float64(u+v)/100)
			}
		}
	}
	return out
}

func TestZZ(t *testing.T) {
	os.Setenv(cluster.Env, "1")
	n, _ := strconv.Atoi(os.Getenv("ZZN"))
	ctx := context.Background()
	tb, end := rig.Outside()
	defer end()
	r := rig.New(tb, rig.Options{Hosts: n, Setup: []rig.Setup{metal.Setup}})
	t0 := time.Now()
	if err := until(ctx, "all hosts are shown", func() (bool, error) {
		var list v1alpha1.MetalHostList
		err := r.Client.List(ctx, &list)
		return len(list.Items) == n && list.Items[n-1].Status.Phase != "", err
	}); err != nil {
		t.Fatal(err)
	}
	r.Idle(tb, 3*time.Second)
	t.Logf("hosts shown %s %s", time.Since(t0), r.Calls())
	before := r.Calls()
	r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bench"}})
	for i := range n {
		r.Machine(i).Hold(rig.Boot)
		defer r.Machine(i).Go(rig.Boot)
	}
	t.Log(cpuOf(""))
	f, _ := os.Create("/tmp/scale.prof")
	pprof.StartCPUProfile(f)
	begin := time.Now()
	var claims atomic.Int64
	go r.Appliance().Watch(ctx, func(ev inventory.Event) {
		if ev.Kind == inventory.EventClaimed {
			if c := claims.Add(1); c%100 == 0 {
				t.Logf("%s claimed %d", time.Since(begin).Round(time.Millisecond), c)
			}
		}
	})
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			return r.Client.Create(ctx, &v1alpha1.MetalMachine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: fmt.Sprintf("m%04d", i)},
				Spec:       v1alpha1.MetalMachineSpec{OS: v1alpha1.OSSpec{Profile: rig.DiskProfile}},
			})
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("applied %s, calls so far: %s", time.Since(begin), r.Calls().Sub(before))
	t.Log(cpuOf(""))
	where := map[string]int{}
	rounds := 0
	for claims.Load() < int64(n) {
		time.Sleep(50 * time.Millisecond)
		buf := make([]byte, 8<<20)
		buf = buf[:runtime.Stack(buf, true)]
		rounds++
		for _, g := range strings.Split(string(buf), "\n\n") {
			if !strings.Contains(g, "metal.(*machines).Reconcile") {
				continue
			}
			key := ""
			for _, l := range strings.Split(g, "\n") {
				if strings.HasPrefix(l, "slipway.dev/") || strings.HasPrefix(l, "net/http.(*Client).do(") {
					l = l[strings.LastIndex(l, "/")+1:]
					if i := strings.LastIndex(l, "("); i > 0 {
						l = l[:i]
					}
					key += l + " < "
				}
			}
			where[key]++
		}
	}
	for k, c := range where {
		if c > 10 {
			t.Logf("%d/%d %s", c, rounds, k)
		}
	}
	t.Log(cpuOf(""))
	t.Logf("claimed %s, calls so far: %s", time.Since(begin), r.Calls().Sub(before))
	if os.Getenv("ZZQ") == "" {
	until(ctx, "shown", func() (bool, error) {
		var list v1alpha1.MetalMachineList
		time.Sleep(time.Second)
		if err := r.Client.List(ctx, &list); err != nil {
			return false, err
		}
		c := 0
		for i := range list.Items {
			if list.Items[i].Spec.ClaimID != "" && list.Items[i].Status.Phase != "" {
				c++
			}
		}
		return c == n, nil
	})
	}
	if os.Getenv("ZZQ") != "" {
		return
	}
	t.Logf("shown %s, calls so far: %s", time.Since(begin), r.Calls().Sub(before))
	pprof.StopCPUProfile()
	t.Log(cpuOf(""))
	r.Idle(tb, 5*time.Second)
	t.Logf("idle %s, calls: %s", time.Since(begin), r.Calls().Sub(before))
}
