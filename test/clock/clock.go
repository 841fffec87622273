// Package clock lets tests have the clocks of another process go differently from the machine's: its wall clock can be set,
// and hours can pass for it in no time. The process is any Go program, unchanged: its vDSO, the few kilobytes of code that
// the kernel puts into each process to tell the time, is replaced in that process alone. The machine's clock stays as it is.
//
// What a process hands to the kernel as a duration (a sleep, a poll) lasts as long as ever; Go's runtime looks at its timers
// each time that anything wakes it, so timers that have become due fire within milliseconds in a process that is busy at all.
package clock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrUnsupported is returned where this does not work: on processors other than x86-64.
var ErrUnsupported = errors.New("the clocks of another process can be replaced on x86-64 only")

// Clock is that of one process. Its methods are for one goroutine.
type Clock struct {
	mem        *os.File
	at         int64 // address of the two offsets: the wall clock's, and the other's that counts from boot
	wall, mono int64 // seconds
}

// code is clock_gettime(2) by the system call, plus an offset in seconds; the two offsets lie behind it.
var code = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228
	0x0f, 0x05, // syscall
	0x85, 0xc0, // test eax, eax
	0x75, 0x1b, // jnz done
	0x85, 0xff, // test edi, edi: CLOCK_REALTIME
	0x74, 0x0d, // jz wall
	0xff, 0xcf, // dec edi
	0x75, 0x13, // jnz done: neither that nor CLOCK_MONOTONIC
	0x48, 0x8b, 0x0d, 0x16, 0x00, 0x00, 0x00, // mov rcx, [mono]
	0xeb, 0x07, // jmp add
	0x48, 0x8b, 0x0d, 0x05, 0x00, 0x00, 0x00, // wall: mov rcx, [wall]
	0x48, 0x01, 0x0e, // add: add [rsi], rcx
	0xc3, // done: ret
	0x90,
}

const (
	offsets = 16 // bytes behind the code
	jumpN   = 5  // bytes of a jump
)

// Take replaces the clocks of a process, which go on unchanged at first. It needs the right to trace the process.
func Take(pid int) (*Clock, error) {
	if runtime.GOARCH != "amd64" {
		return nil, ErrUnsupported
	}
	start, size, err := findVDSO(pid)
	if err != nil {
		return nil, err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the memory of process %d: %w", pid, err)
	}
	c, err := replace(pid, mem, start, size)
	if err != nil {
		mem.Close()
		return nil, fmt.Errorf("replace the clocks of process %d: %w", pid, err)
	}
	return c, nil
}

func replace(pid int, mem *os.File, start, size int64) (*Clock, error) {
	image := make([]byte, size)
	if _, err := mem.ReadAt(image, start); err != nil {
		return nil, err
	}
	entry, room, err := places(image)
	if err != nil {
		return nil, err
	}
	if err := stopOutside(pid, start+entry, jumpN); err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	if _, err := mem.WriteAt(append(bytes.Clone(code), make([]byte, offsets)...), start+room); err != nil {
		return nil, err
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(room-(entry+jumpN)))
	if _, err := mem.WriteAt(jump, start+entry); err != nil {
		return nil, err
	}
	return &Clock{mem: mem, at: start + room + int64(len(code))}, nil
}

// places returns where clock_gettime begins and where there is room for other code, as offsets into the image.
func places(image []byte) (entry, room int64, err error) {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			entry = int64(s.Value)
		}
	}
	need := len(code) + offsets + 8
	end := len(bytes.TrimRight(image, "\x00"))
	room = int64(end+63) &^ 7 // away from what ends with zeroes itself; the offsets are aligned, as the code is 40 bytes long
	if entry == 0 || int(room)+need > len(image) {
		return 0, 0, fmt.Errorf("its vDSO has %d bytes, of which %d are in use, and clock_gettime at %d: there is no room", len(image), end, entry)
	}
	return entry, room, nil
}

func findVDSO(pid int) (start, size int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			continue
		}
		var end int64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil {
			return 0, 0, fmt.Errorf("%q: %w", line, err)
		}
		return start, end - start, nil
	}
	return 0, 0, fmt.Errorf("process %d has no vDSO", pid)
}

// stopOutside stops all threads of a process while none of them is within n bytes from an address on.
func stopOutside(pid int, address int64, n int) error {
	for range 100 {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		inside, err := anyInside(pid, address, n)
		if err == nil && !inside {
			return nil
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		if err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("it asks for the time without a pause")
}

func anyInside(pid int, address int64, n int) (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		for tries := 0; ; tries++ {
			text, err := os.ReadFile(filepath.Join(task, "syscall")) // "NUMBER ... SP PC", or "running"
			if errors.Is(err, os.ErrNotExist) {
				break // it has ended
			}
			if err != nil {
				return false, err
			}
			words := strings.Fields(string(text))
			if len(words) < 2 { // it has not stopped yet
				if tries > 1000 {
					return false, errors.New("a thread does not stop")
				}
				time.Sleep(time.Millisecond)
				continue
			}
			pc, err := strconv.ParseUint(strings.TrimPrefix(words[len(words)-1], "0x"), 16, 64)
			if err != nil {
				return false, err
			}
			if at := int64(pc); at > address && at < address+int64(n) {
				return true, nil
			}
			break
		}
	}
	return false, nil
}

// Set moves the wall clock as date(1) does, by whole seconds; what counts from boot goes on.
func (c *Clock) Set(by time.Duration) error { return c.move(by, 0) }

// Pass lets time pass on all clocks, in whole seconds.
func (c *Clock) Pass(d time.Duration) error { return c.move(d, d) }

func (c *Clock) move(wall, mono time.Duration) error {
	c.wall += int64(wall / time.Second)
	c.mono += int64(mono / time.Second)
	b := binary.LittleEndian.AppendUint64(nil, uint64(c.wall))
	_, err := c.mem.WriteAt(binary.LittleEndian.AppendUint64(b, uint64(c.mono)), c.at)
	return err
}

// Now is the time that the process has.
func (c *Clock) Now() time.Time { return time.Now().Round(0).Add(time.Duration(c.wall) * time.Second) }

// Close lets go of the process, whose clocks stay as they are.
func (c *Clock) Close() error { return c.mem.Close() }
