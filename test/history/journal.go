package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"
)

// Journal is the file in which one process writes down what its clients ask and hear. Many goroutines may call Ask. A line is in the file
// before its process goes on. So nothing is missing after kill -9.
type Journal struct {
	mu    sync.Mutex
	file  *os.File
	callN int
}

// line is a line of a journal: a call, or with an answer the end of the call of that number.
type line struct {
	N       int      `json:"n"`
	At      int64    `json:"at"`
	Request *Request `json:"request,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`
}

// Create makes a journal. Each process, and each start of one, has its own.
func Create(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Journal{file: f}, nil
}

// Ask writes down a request, lets do ask it, and writes down the answer.
func (j *Journal) Ask(r Request, do func() Answer) (Answer, error) {
	j.mu.Lock()
	j.callN++
	n := j.callN
	j.mu.Unlock()
	if err := j.write(line{N: n, Request: &r}); err != nil {
		return Answer{}, err
	}
	a := do()
	return a, j.write(line{N: n, Answer: &a})
}

// write stamps the line under the lock: the lines of a journal are in the order of their times.
func (j *Journal) write(l line) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	at, err := now()
	if err != nil {
		return err
	}
	l.At = at
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// now is a clock that all processes of the machine share, and that nobody can set. Nanoseconds in time.Time can be set with the wall clock.
func now() (int64, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return at.Nano(), nil
}

// forever is when a request without an answer ends: after all others.
const forever = math.MaxInt64

// History is what several journals have together.
type History []porcupine.Operation

// Open reads journals. A process that was killed leaves half a line at most, at the end.
func Open(paths ...string) (History, error) {
	var all History
	for client, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		one, err := read(f, client)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("read journal %s: %w", path, err)
		}
		all = append(all, one...)
	}
	return append(all, all.mirrored()...), nil
}

// mirrored are the requests about hosts as requests about machines. A claim binds both: each has one of the other.
func (h History) mirrored() (all History) {
	for _, op := range h {
		r, a := op.Input.(Request), op.Output.(Answer)
		if r.Model == Hosts && r.Do != Read { // a read says nothing of the other machines
			r.Model, r.Key, r.Who, a.Holder, a.Other = Machines, r.Who, r.Key, a.Other, a.Holder
			op.Input, op.Output = r, a
			all = append(all, op)
		}
	}
	return all
}

// read reads one journal.
func read(from io.Reader, client int) (History, error) {
	var all History
	calls := map[int]int{} // places in all of calls without an answer
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes('\n')
		if err == io.EOF { // what is left has no end
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		if l.Request != nil {
			calls[l.N] = len(all)
			all = append(all, porcupine.Operation{
				ClientId: client, Input: *l.Request, Call: l.At, Output: Answer{Is: Unknown}, Return: forever,
			})
			continue
		}
		at, isKnown := calls[l.N]
		if !isKnown || l.Answer == nil {
			return nil, fmt.Errorf("an answer to a request that nobody asked: %s", text)
		}
		delete(calls, l.N)
		if l.Answer.Is != Unknown { // else it stays open
			all[at].Output, all[at].Return = *l.Answer, l.At
		}
	}
}
