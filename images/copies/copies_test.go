package copies

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// site is the instances of one database, in one process.
type site struct {
	t         *testing.T
	mu        sync.Mutex
	nodes     map[string]*node
	artefacts map[inventory.Digest]inventory.Artefact // of the database
	dead      map[string]bool                         // that others believe alive
	// sends changes what an instance sends from an offset on; by name.
	sends map[string]func(body io.ReadCloser, offset int64) (io.ReadCloser, error)
	asked []string // "name offset" of each fetch
	log   bytes.Buffer
}

// node is an instance.
type node struct {
	*Copies
	cache *images.Cache
	dir   string
}

func newSite(t *testing.T, names ...string) *site {
	s := &site{
		t: t, nodes: map[string]*node{}, artefacts: map[inventory.Digest]inventory.Artefact{}, dead: map[string]bool{},
		sends: map[string]func(io.ReadCloser, int64) (io.ReadCloser, error){},
	}
	for _, name := range names {
		s.boot(name, t.TempDir(), nil)
	}
	return s
}

// boot starts an instance on a folder.
func (s *site) boot(name, dir string, change func(*Config)) *node {
	cache, err := images.New(images.Config{Dir: dir, Store: store{s: s}, Now: time.Now})
	if err != nil {
		s.t.Fatal(err)
	}
	cfg := Config{
		Cache: cache, Store: store{s: s}, Peers: others{s, name}, Now: time.Now, Log: slog.New(slog.NewTextHandler(locked{s}, nil)),
		StallFor: 200 * time.Millisecond, WaitFor: 5 * time.Second, AgainFor: time.Nanosecond, GoneFor: 200 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	n := &node{New(cfg), cache, dir}
	s.t.Cleanup(n.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[name] = n
	return n
}

// locked writes to the log of a site.
type locked struct{ s *site }

func (l locked) Write(p []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.s.log.Write(p)
}

func (s *site) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *site) fetches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// put stores random content on an instance and in the database.
func (s *site) put(name string, size int) (content []byte, f File) {
	s.t.Helper()
	content = make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = random.Read(content)
	sum := sha256.Sum256(content)
	f = File{inventory.Digest("sha256:" + hex.EncodeToString(sum[:])), int64(size)}
	s.place(name, content, f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.artefacts[f.Digest] = inventory.Artefact{Digest: f.Digest, SizeBytes: f.SizeBytes}
	return content, f
}

func (s *site) place(name string, content []byte, f File) {
	s.t.Helper()
	temp := filepath.Join(s.nodes[name].cache.PartialDir(), "temp-test")
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := s.nodes[name].cache.Keep(s.t.Context(), temp, f.Digest, f.SizeBytes); err != nil {
		s.t.Fatal(err)
	}
}

// opened returns what an instance gives a machine.
func (n *node) opened(d inventory.Digest) (string, error) {
	f, _, err := n.Open(d)
	if err != nil {
		return "", err
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	return string(all), err
}

// store is the database: artefacts only.
type store struct {
	inventory.Store
	s *site
}

func (st store) Read(_ context.Context, fn func(inventory.Tx) error) error { return fn(tx{s: st.s}) }

type tx struct {
	inventory.Tx
	s *site
}

func (t tx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	a, ok := t.s.artefacts[d]
	if !ok {
		return a, inventory.Errorf(inventory.NotFound, "no artefact %s", d)
	}
	return a, nil
}

// others are the instances as one of them reaches them.
type others struct {
	s    *site
	self string
}

func (o others) Live(context.Context) ([]string, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.s.nodes)), func(n string) bool { return n == o.self }), nil
}

var errGone = inventory.Errorf(inventory.Unavailable, "it does not answer")

func (o others) node(name string) (*node, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.dead[name] {
		return nil, errGone
	}
	return o.s.nodes[name], nil
}

func (o others) Fetch(ctx context.Context, name string, d inventory.Digest, offset int64) (io.ReadCloser, error) {
	n, err := o.node(name)
	if err != nil {
		return nil, err
	}
	o.s.mu.Lock()
	o.s.asked = append(o.s.asked, fmt.Sprint(name, " ", offset))
	change := o.s.sends[name]
	o.s.mu.Unlock()
	f, _, err := n.cache.Open(d)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	body := &endsWith{f, ctx}
	if change != nil {
		return change(body, offset)
	}
	return body, nil
}

// endsWith is a body that a cancelled request ends.
type endsWith struct {
	io.ReadCloser
	ctx context.Context
}

func (e *endsWith) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.ReadCloser.Read(p)
}

func (o others) Bring(ctx context.Context, name string, f File) (Arrived, error) {
	n, err := o.node(name)
	if err != nil {
		return Arrived{}, err
	}
	return n.Bring(ctx, f)
}

func (o others) Lacking(_ context.Context, name string, of []inventory.Digest) ([]inventory.Digest, error) {
	n, err := o.node(name)
	if err != nil {
		return nil, err
	}
	return n.Lacking(of), nil
}

// changed is a body whose content another reader gives.
type changed struct {
	io.Reader
	io.Closer
}

// zeros is content without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// slow gives one byte at a time.
type slow struct{ io.ReadCloser }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	return s.ReadCloser.Read(p[:1])
}

const size = 3 << 20

// hostile are instances that send something else.
var hostile = map[string]func(io.ReadCloser, int64) (io.ReadCloser, error){
	"wrong bytes": func(b io.ReadCloser, offset int64) (io.ReadCloser, error) {
		return changed{io.LimitReader(zeros{}, size-offset), b}, nil
	},
	"one wrong bit at the end": func(b io.ReadCloser, offset int64) (io.ReadCloser, error) {
		all, err := io.ReadAll(b)
		all[len(all)-1] ^= 1
		return changed{bytes.NewReader(all), b}, err
	},
	"too many bytes": func(b io.ReadCloser, _ int64) (io.ReadCloser, error) {
		return changed{io.MultiReader(b, strings.NewReader("x")), b}, nil
	},
	"endless": func(b io.ReadCloser, _ int64) (io.ReadCloser, error) { return changed{zeros{}, b}, nil },
	"slow":    func(b io.ReadCloser, _ int64) (io.ReadCloser, error) { return slow{b}, nil },
	"nothing": func(b io.ReadCloser, _ int64) (io.ReadCloser, error) { return changed{strings.NewReader(""), b}, nil },
	"cut": func(b io.ReadCloser, _ int64) (io.ReadCloser, error) {
		return changed{io.LimitReader(b, size/2), b}, nil
	},
	"no answer": func(io.ReadCloser, int64) (io.ReadCloser, error) { return nil, errGone },
}

// An instance that sends something else never makes a file of this instance. The next one is asked.
func TestAnInstanceThatSendsSomethingElseIsLeftForTheNext(t *testing.T) {
	for name, sends := range hostile {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "a", "b", "c")
			content, f := s.put("b", size)
			s.place("c", content, f)
			s.sends["b"] = sends
			got, err := s.nodes["a"].opened(f.Digest)
			if err != nil || got != string(content) {
				t.Fatalf("%d bytes, %v\n%s", len(got), err, s.logged())
			}
			isLie := strings.Contains(name, "wrong") || name == "too many bytes" || name == "endless"
			said := `level=ERROR msg="another instance sends a damaged file: it is refused" instance=b`
			if strings.Contains(s.logged(), said) != isLie {
				t.Errorf("logged: %s", s.logged())
			}
		})
	}
}

// Nothing of what it sends is ever given to a machine, and its folder does not grow beyond the size of the file.
func TestNothingUncheckedIsServed(t *testing.T) {
	for name, sends := range hostile {
		t.Run(name, func(t *testing.T) {
			if name == "cut" {
				t.Skip("it goes on where it was cut, so it ends")
			}
			s := newSite(t, "a", "b")
			_, f := s.put("b", size)
			s.sends["b"] = sends
			got, err := s.nodes["a"].opened(f.Digest)
			if !inventory.IsKind(err, inventory.Unavailable) || got != "" || strings.Contains(err.Error(), "are here") {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if asked := s.fetches(); len(asked) != 1 {
				t.Errorf("asked %v", asked)
			}
			if s.nodes["a"].has(f) {
				t.Error("it is in the cache")
			}
			left, err := os.Stat(filepath.Join(s.nodes["a"].cache.PartialDir(), "copy-"+f.Digest.Hex()))
			if err != nil || left.Size() > size {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// Pieces of several instances may not fit together: then one of them sends all of it.
func TestAFileGoesOnWithTheNextInstance(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	content, f := s.put("b", size)
	s.place("c", content, f)
	s.sends["b"] = hostile["cut"]
	if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if want := []string{"b 0", fmt.Sprint("c ", size/2)}; !slices.Equal(s.fetches(), want) {
		t.Errorf("asked %v, want %v", s.fetches(), want)
	}
	s = newSite(t, "a", "b", "c")
	content, f = s.put("b", size)
	s.place("c", content, f)
	s.sends["b"] = func(b io.ReadCloser, _ int64) (io.ReadCloser, error) { // wrong and cut
		return changed{io.LimitReader(zeros{}, size/2), b}, nil
	}
	if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if want := []string{"b 0", fmt.Sprint("c ", size/2), "c 0"}; !slices.Equal(s.fetches(), want) {
		t.Errorf("asked %v, want %v", s.fetches(), want)
	}
}

// An instance with a damaged file is not asked again for it, however often others break off.
func TestADamagedFileIsNotFetchedAgain(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	content, f := s.put("b", size)
	s.place("c", content, f)
	s.sends["b"], s.sends["c"] = hostile["wrong bytes"], hostile["cut"]
	if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if want := []string{"b 0", "c 0", fmt.Sprint("c ", size/2)}; !slices.Equal(s.fetches(), want) {
		t.Errorf("asked %v, want %v", s.fetches(), want)
	}
}

func TestManyMachinesAreOneFetch(t *testing.T) {
	s := newSite(t, "a", "b")
	content, f := s.put("b", size)
	s.sends["b"] = func(b io.ReadCloser, _ int64) (io.ReadCloser, error) {
		time.Sleep(50 * time.Millisecond) // all ask before it comes
		return b, nil
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
	if len(s.fetches()) != 1 {
		t.Errorf("fetched %d times", len(s.fetches()))
	}
}

// A restart in the middle goes on there. What a power failure has damaged comes again.
func TestARestartGoesOn(t *testing.T) {
	for name, damage := range map[string]bool{"whole": false, "damaged": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "a", "b")
			content, f := s.put("b", size)
			var err error
			a := s.boot("a", t.TempDir(), func(c *Config) { c.WaitFor, c.StallFor = time.Millisecond, time.Hour })
			s.sends["b"] = func(b io.ReadCloser, _ int64) (io.ReadCloser, error) {
				return changed{io.MultiReader(io.LimitReader(b, size/2), hangs{b.(*endsWith).ctx}), b}, nil
			}
			for got := (Arrived{}); got.Bytes < size/2; {
				if got, err = a.Bring(t.Context(), f); err != nil || got.IsWhole {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			a.Close()
			if damage {
				left, err := os.OpenFile(filepath.Join(a.cache.PartialDir(), "copy-"+f.Digest.Hex()), os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := left.WriteAt(make([]byte, 4096), 8192); err != nil {
					t.Fatal(err)
				}
				left.Close()
			}
			s.sends["b"] = nil
			s.boot("a", a.dir, nil)
			if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			want := []string{"b 0", fmt.Sprint("b ", size/2)}
			if damage {
				want = append(want, "b 0")
			}
			if !slices.Equal(s.fetches(), want) {
				t.Errorf("asked %v, want %v", s.fetches(), want)
			}
		})
	}
}

// hangs gives nothing until its request is ended.
type hangs struct{ ctx context.Context }

func (h hangs) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

// fullCache has no room.
type fullCache struct{ Cache }

func (fullCache) CheckSpace(int64) error {
	return inventory.Errorf(inventory.Unavailable, "the disk of the artefact folder is full")
}

func TestAFullDiskAsksNobody(t *testing.T) {
	s := newSite(t, "b")
	_, f := s.put("b", size)
	a := s.boot("a", t.TempDir(), func(c *Config) { c.Cache = fullCache{c.Cache} })
	if _, err := a.opened(f.Digest); !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "full") {
		t.Error(err)
	}
	if len(s.fetches()) > 0 {
		t.Errorf("asked %v", s.fetches())
	}
}

// A machine hears that it has to wait, and gets the file when it asks again.
func TestAMachineWaitsForALargeFile(t *testing.T) {
	s := newSite(t, "b")
	content, f := s.put("b", size)
	a := s.boot("a", t.TempDir(), func(c *Config) { c.WaitFor, c.StallFor = 10*time.Millisecond, 5*time.Second })
	s.sends["b"] = func(b io.ReadCloser, _ int64) (io.ReadCloser, error) {
		time.Sleep(100 * time.Millisecond)
		return b, nil
	}
	_, err := a.opened(f.Digest)
	if !inventory.IsKind(err, inventory.Unavailable) || !strings.Contains(err.Error(), "comes from another instance") {
		t.Fatal(err)
	}
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		got, err := a.opened(f.Digest)
		if err == nil && got == string(content) {
			break
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// Only when all have answered that they lack a file is it gone.
func TestUnknownIsNotMissing(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	_, f := s.put("a", size)
	empty := s.boot("d", t.TempDir(), nil)
	s.dead["a"] = true
	if _, err := empty.opened(f.Digest); !inventory.IsKind(err, inventory.Unavailable) {
		t.Errorf("one does not answer: %v", err)
	}
	delete(s.nodes, "a")
	if _, err := empty.opened(f.Digest); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("all lack it: %v", err)
	}
	if _, err := empty.opened("sha256:" + inventory.Digest(strings.Repeat("0", 64))); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("the database does not know it: %v", err)
	}
}

func TestAfterAFailureTheOthersAreLeftInPeace(t *testing.T) {
	s := newSite(t, "b")
	_, f := s.put("b", size)
	s.sends["b"] = hostile["nothing"]
	a := s.boot("a", t.TempDir(), func(c *Config) { c.AgainFor = time.Hour })
	for range 5 {
		if _, err := a.opened(f.Digest); err == nil {
			t.Fatal("it came")
		}
		if _, err := a.Bring(t.Context(), f); err == nil {
			t.Fatal("it came")
		}
	}
	if len(s.fetches()) != 1 {
		t.Errorf("asked %v", s.fetches())
	}
}

// share shares files of a, and returns the notes.
func (s *site) share(files ...File) (notes string) {
	s.t.Helper()
	var all []inventory.Artefact
	for _, f := range files {
		all = append(all, inventory.Artefact{Digest: f.Digest, SizeBytes: f.SizeBytes})
	}
	note := func(text string, args ...any) { notes += fmt.Sprintf(text, args...) + "\n" }
	if err := s.nodes["a"].Share(s.t.Context(), all, note); err != nil {
		s.t.Error(err)
	}
	return notes
}

func TestAnImportIsDoneWhenAnotherInstanceHasTheFiles(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	_, kernel := s.put("a", size)
	_, initrd := s.put("a", size+1)
	s.sends["a"] = nil
	s.dead["c"] = true
	if notes := s.share(kernel, initrd); strings.Contains(notes, "only") {
		t.Error(notes)
	}
	if !s.nodes["b"].has(kernel) || !s.nodes["b"].has(initrd) {
		t.Error("b lacks a file")
	}
}

func TestAnImportDoesNotWaitForInstancesThatAreGone(t *testing.T) {
	for name, broken := range map[string]func(*site){
		"gone":               func(s *site) { s.dead["b"] = true },
		"its disk is broken": func(s *site) { s.boot("b", t.TempDir(), func(c *Config) { c.Cache = fullCache{c.Cache} }) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "a", "b")
			_, f := s.put("a", size)
			broken(s)
			began := time.Now()
			if notes := s.share(f); !strings.Contains(notes, "only this instance has the files: instance b: ") {
				t.Errorf("notes: %s", notes)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			alone, why := s.nodes["a"].Alone(t.Context(), []inventory.Digest{f.Digest})
			if !slices.Equal(alone, []inventory.Digest{f.Digest}) || (name == "gone") != (why != nil) {
				t.Errorf("alone: %v, %v", alone, why)
			}
		})
	}
}

func TestAnInstanceAloneDoesNotWait(t *testing.T) {
	s := newSite(t, "a")
	_, f := s.put("a", size)
	if notes := s.share(f); notes != "" {
		t.Error(notes)
	}
	if alone, why := s.nodes["a"].Alone(t.Context(), []inventory.Digest{f.Digest}); alone != nil || why != nil {
		t.Errorf("%v, %v", alone, why)
	}
}

// A new instance fetches all files, and a damaged one is replaced.
func TestMissingAndDamagedFilesComeFromOthers(t *testing.T) {
	s := newSite(t, "a", "b")
	content, f := s.put("b", size)
	_, gone := s.put("b", size+1)
	if err := os.Remove(filepath.Join(s.nodes["b"].dir, "sha256", gone.Digest.Hex()[:2], gone.Digest.Hex())); err != nil {
		t.Fatal(err)
	}
	s.place("a", bytes.Repeat([]byte{7}, size), f)
	faults := []images.Fault{{Digest: f.Digest, Problem: "damaged"}, {Digest: gone.Digest, Problem: "missing", Hint: "import it"}}
	left := s.nodes["a"].Mend(t.Context(), faults)
	if want := "start the instance that has it, if there is one; else import it"; len(left) != 1 || left[0].Digest != gone.Digest ||
		left[0].Hint != want {
		t.Errorf("left: %+v", left)
	}
	if got, err := s.nodes["a"].opened(f.Digest); err != nil || got != string(content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// An import would help no instance that cannot fetch or keep a file that another one has.
	s.dead["b"] = true
	left = s.nodes["a"].Mend(t.Context(), faults[1:])
	if len(left) != 1 || !strings.HasPrefix(left[0].Hint, "it is fetched from another instance again and again, and the last time: ") ||
		strings.Contains(left[0].Hint, "import") {
		t.Errorf("left: %+v", left)
	}
}
