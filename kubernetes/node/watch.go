package node

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const nodesPath = "/api/v1/nodes"

// watch keeps the nodes of one cluster, trimmed, and knows whether the cluster can be reached. It watches all nodes:
// one that a foreign bootstrap provider made carries nothing of ours to select by. mu guards all fields below it.
type watch struct {
	patience time.Duration
	log      *slog.Logger

	mu      sync.Mutex
	nodes   cache.Store
	isRead  bool
	failing error // of the latest call; nil when it worked
	isDown  bool  // failing for longer than patience
	timer   *time.Timer
	wake    func(*Node) // nil until it runs
}

func newWatch(patience time.Duration, log *slog.Logger) *watch {
	return &watch{patience: patience, log: log}
}

// known returns the nodes, whether they have been read at least once, and the error of the latest call while the cluster
// is down.
func (w *watch) known() (nodes []*corev1.Node, isRead bool, problem error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isDown {
		problem = w.failing
	}
	if !w.isRead {
		return nil, false, problem
	}
	items := w.nodes.List()
	nodes = make([]*corev1.Node, len(items))
	for i, o := range items {
		nodes[i] = o.(*corev1.Node)
	}
	return nodes, true, problem
}

// run watches until ctx ends.
func (w *watch) run(ctx context.Context, api kubernetes.Interface, wake func(*Node)) {
	lw := cache.NewListWatchFromClient(api.CoreV1().RESTClient(), "nodes", "", fields.Everything())
	// The informer lists and watches again after each failure, with pauses of its own. Nothing here has to start it again.
	informer := cache.NewSharedInformer(lw, &corev1.Node{}, 0)
	_ = informer.SetTransform(func(o any) (any, error) { // fails only when it runs already, as do the next two
		if n, ok := o.(*corev1.Node); ok {
			return trim(n), nil
		}
		return o, nil
	})
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// A version that is too old is no failure: the informer lists everything again.
		if s := apierrors.ReasonForError(err); ctx.Err() == nil && s != "Expired" && s != "Gone" {
			w.failed(err)
		}
	})
	read, _ := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, isFirst bool) {
			if !isFirst {
				wake(seen(o.(*corev1.Node)))
			}
		},
		UpdateFunc: func(before, after any) {
			if old, n := before.(*corev1.Node), after.(*corev1.Node); isNews(old, n) {
				wake(seen(n))
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if n, ok := o.(*corev1.Node); ok {
				wake(seen(n))
			}
		},
	})
	w.mu.Lock()
	w.nodes, w.wake = informer.GetStore(), wake
	w.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), read.HasSynced) {
			w.mu.Lock()
			w.isRead = true
			w.mu.Unlock()
			wake(nil)
		}
	})
	informer.RunWithContext(ctx)
	wg.Wait()
	w.mu.Lock()
	w.wake = nil
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
}

// isNews reports whether a node has changed in anything that is kept of it.
func isNews(old, n *corev1.Node) bool {
	a, b := *old, *n
	a.ResourceVersion, b.ResourceVersion = "", ""
	return !equality.Semantic.DeepEqual(&a, &b)
}

// failed notes that nodes could not be read. It counts once it lasts for patience: an API server that starts refuses
// much.
func (w *watch) failed(err error) {
	w.turn(func() bool {
		w.failing = err
		if w.timer == nil {
			// A timer, because a cluster that does not answer may take a minute until its next failure.
			w.timer = time.AfterFunc(w.patience, func() { w.turn(func() bool { return w.failing != nil }) })
		}
		return w.isDown
	})
}

// worked notes that nodes could be read.
func (w *watch) worked() {
	w.turn(func() bool {
		w.failing = nil
		if w.timer != nil {
			w.timer.Stop()
			w.timer = nil
		}
		return false
	})
}

// turn sets whether the cluster is down, and wakes everybody when that is new.
func (w *watch) turn(isDown func() bool) {
	w.mu.Lock()
	was := w.isDown
	w.isDown = isDown()
	wake, is, err := w.wake, w.isDown, w.failing
	w.mu.Unlock()
	// After the unlock: anyone who is woken asks for the nodes, which takes the lock.
	if is == was || wake == nil {
		return
	}
	if is {
		w.log.Warn("workload cluster cannot be watched", "err", err)
	} else {
		w.log.Info("workload cluster is watched again")
	}
	wake(nil)
}

// listener hears how calls about nodes end. An informer tells only of some failures, and of no success.
type listener struct {
	rt http.RoundTripper
	w  *watch
}

// RoundTrip sends a request.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.rt.RoundTrip(r)
	switch {
	case !strings.HasPrefix(r.URL.Path, nodesPath):
	case err != nil && r.Context().Err() == nil:
		l.w.failed(&url.Error{Op: r.Method, URL: r.URL.String(), Err: err}) // as a client does: messages name the place
	case err == nil && resp.StatusCode == http.StatusOK:
		l.w.worked()
	}
	return resp, err
}
