package httpboot

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// progress adds up the ranges of each file that a machine has, over all its requests. A machine resumes a broken
// download with a new request. It reports once that a file begins, and once that it is whole or has stopped. The lock
// is held only inside its methods.
type progress struct {
	now func() time.Time

	mu    sync.Mutex
	files map[fetchKey]*fetch
}

// fetchKey is one file on its way to one machine.
type fetchKey struct {
	session inventory.SessionID
	source  netip.Addr
	name    string
	digest  inventory.Digest
}

// fetch is the state of one file on its way to one machine.
type fetch struct {
	startedAt, lastAt time.Time
	size              int64
	have              []span // sorted, apart from each other
	runningN          int
	isTold            bool // that it stopped
}

// span is a range of bytes, from included, to excluded.
type span struct{ from, to int64 }

const (
	maxFetches = 8192
	// maxSpans bounds the memory of a machine that reads here and there. Beyond it add drops the smallest span, so
	// such a file may never count as whole.
	maxSpans = 64
	// silentFor is how long a machine may take between two ranges of a file.
	silentFor = 2 * time.Minute
)

var errStoppedAsking = errors.New("the machine stopped asking for the rest")

func newProgress(now func() time.Time) *progress {
	return &progress{now: now, files: map[fetchKey]*fetch{}}
}

func (k fetchKey) transfer(f *fetch) pxe.Transfer {
	return pxe.Transfer{Session: k.session, Source: k.source, Proto: proto, Name: k.name, Bytes: f.bytes(), Size: f.size, Took: f.lastAt.Sub(f.startedAt)}
}

// begin records that the server is about to send a part of a file; isNew is true for the first part. Each begin needs
// one end.
func (p *progress) begin(k fetchKey, size int64) (t pxe.Transfer, isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[k]
	if f == nil {
		isNew = true
		f = &fetch{startedAt: p.now(), size: size}
		// Beyond the bound the server still sends, but follows no progress: end then judges the part alone.
		if len(p.files) < maxFetches {
			p.files[k] = f
		}
	}
	f.lastAt = p.now()
	f.runningN++
	f.isTold = false
	return k.transfer(f), isNew
}

// end records that the server has sent a part; err says why it broke off. hasEnded is true when the file is whole or
// err is set: then the caller reports t.
func (p *progress) end(k fetchKey, sent span, size int64, err error) (t pxe.Transfer, hasEnded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[k]
	if f == nil { // more files at once than are followed: this part stands for itself
		f = &fetch{startedAt: p.now(), size: size, runningN: 1}
	}
	f.lastAt = p.now()
	f.runningN--
	f.add(sent)
	t = k.transfer(f)
	switch {
	case f.bytes() == f.size:
		delete(p.files, k)
		return t, true
	case err != nil:
		f.isTold = true
		t.Err = err
		return t, true
	}
	return t, false
}

// sweep drops files that no request has touched for silentFor. It returns those whose end was never reported; the
// caller passes them to Boots.
func (p *progress) sweep() []pxe.Transfer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stopped []pxe.Transfer
	for k, f := range p.files {
		if f.runningN > 0 || p.now().Sub(f.lastAt) < silentFor {
			continue
		}
		delete(p.files, k)
		if !f.isTold {
			t := k.transfer(f)
			t.Err = errStoppedAsking
			stopped = append(stopped, t)
		}
	}
	return stopped
}

// add merges a span into the spans that the machine has, so that a byte that was sent twice counts once.
func (f *fetch) add(s span) {
	if s.to <= s.from {
		return
	}
	i, _ := slices.BinarySearchFunc(f.have, s.from, func(h span, from int64) int { return int(min(max(h.to-from, -1), 1)) })
	j := i
	for ; j < len(f.have) && f.have[j].from <= s.to; j++ {
		s.from, s.to = min(s.from, f.have[j].from), max(s.to, f.have[j].to)
	}
	f.have = slices.Replace(f.have, i, j, s)
	if len(f.have) > maxSpans {
		least := 0
		for i, h := range f.have {
			if h.to-h.from < f.have[least].to-f.have[least].from {
				least = i
			}
		}
		f.have = slices.Delete(f.have, least, least+1)
	}
}

func (f *fetch) bytes() (n int64) {
	for _, s := range f.have {
		n += s.to - s.from
	}
	return n
}
