package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write"
	"slipway.dev/slipway/inventory"
)

const (
	streamSize  = 512 << 20 // bytes of the disk image
	quickStream = 64 << 20
	streamSpare = 8 << 20         // bytes by which the disk is larger than the image
	streamFor   = 2 * time.Minute // that a peer may take
	wireRate    = 2.5e9 / 8       // bytes per second of the narrow path
)

// The ways onto a disk that are compared. The agent's has a name for each format.
const (
	agentRaw   = "agent, raw"
	agentZstd  = "agent, raw.zst"
	agentWire  = "agent, raw at 2.5 Gb/s"
	curlDD     = "curl | dd"
	curlZstdDD = "curl | zstd -d | dd"
	qemuImg    = "qemu-img from a local file"
	netAlone   = "network alone, curl > /dev/null"
	wireAlone  = "network alone at 2.5 Gb/s"
	pathAlone  = "the slower of network and disk"
	diskAlone  = "disk alone, dd from a cached file"
)

// dd writes as it is fastest without leaving anything in the page cache. Without fullblock it would write what a pipe
// gives, 64 KiB at a time.
const dd = " bs=4M iflag=fullblock oflag=direct conv=notrunc,fsync status=none"

// peers are scripts for bash: $1 is the image's URL without its ending, $2 the image as a file, $3 the disk.
var peers = map[string]string{
	curlDD:     `curl -sS --fail "$1.raw" | dd of="$3"` + dd,
	curlZstdDD: `curl -sS --fail "$1.raw.zst" | zstd -dcq | dd of="$3"` + dd,
	qemuImg:    `qemu-img convert -n -t none -f raw -O raw "$2" "$3"`,
	wireAlone:  `curl -sS --fail -o /dev/null "${1%/image}/wire/image.raw"`,
	netAlone:   `curl -sS --fail -o /dev/null "$1.raw"`,
	diskAlone:  `dd if="$2" of="$3"` + dd,
}

// streamBenchmark compares two of the ways; all are measured together, once in a run.
func streamBenchmark(name, ours, peer, peerName string) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		f := Figure{Name: name, Unit: "MB/s", PeerName: peerName}
		if e.streams == nil {
			rates, err := e.measureStreams(ctx)
			if err != nil {
				return f, err
			}
			e.streams = rates
		}
		f.Ours, f.Peer = e.streams[ours], e.streams[peer]
		return f, nil
	}
}

// streaming is an image on a local server, and a disk, which is a file that is as full as a used disk is.
type streaming struct {
	dir    string
	size   int64
	digest string // of the raw image
	files  map[string]wire.ImageFile
	url    string // without the ending
}

// measureStreams returns the megabytes of the disk per second, by way.
func (e *Env) measureStreams(ctx context.Context) (rates map[string]float64, err error) {
	dir, err := e.freshDir("stream")
	if err != nil {
		return nil, err
	}
	s := &streaming{dir: dir, size: streamSize}
	if e.Quick {
		s.size = quickStream
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the image: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/wire/image.raw", s.narrow)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with an error that says that it was closed
	defer func() { err = errors.Join(err, server.Close()) }()
	s.url = "http://" + listener.Addr().String() + "/image"
	if err := s.furnish(ctx); err != nil {
		return nil, err
	}
	ways := []string{netAlone, wireAlone, agentWire, diskAlone, curlDD, agentRaw, qemuImg, curlZstdDD, agentZstd}
	took := map[string][]float64{}
	for range e.repeats() { // in turns, so that a busy minute of the machine hits all
		for _, way := range ways {
			if e.Slipway == "" && peers[way] == "" {
				continue
			}
			rate, err := s.run(ctx, way)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
			took[way] = append(took[way], rate)
		}
	}
	rates = map[string]float64{}
	for _, way := range ways {
		if len(took[way]) > 0 {
			rates[way] = median(took[way])
			e.say("%s: %.0f MB/s (of %.0f)", way, rates[way], took[way])
		}
	}
	rates[pathAlone] = min(rates[netAlone], rates[diskAlone])
	return rates, nil
}

// furnish makes the image, packs it, and fills the disk.
func (s *streaming) furnish(ctx context.Context) error {
	raw := filepath.Join(s.dir, "image.raw")
	if err := writeSystem(raw, s.size); err != nil {
		return err
	}
	if err := run(ctx, "zstd", "-q", "-3", "-T0", raw, "-o", raw+".zst"); err != nil {
		return err
	}
	s.files = map[string]wire.ImageFile{}
	for way, format := range map[string]string{agentRaw: "raw", agentZstd: "raw.zst"} {
		name := filepath.Join(s.dir, "image."+format)
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("look at the image: %w", err)
		}
		digest, err := digestOf(name, info.Size())
		if err != nil {
			return err
		}
		s.files[way] = wire.ImageFile{URL: s.url + "." + format, Digest: digest, SizeBytes: info.Size(), DiskBytes: s.size, Format: format}
	}
	narrow := s.files[agentRaw]
	narrow.URL = strings.TrimSuffix(s.url, "image") + "wire/image.raw"
	s.files[agentWire], s.digest = narrow, narrow.Digest
	if err := os.Mkdir(filepath.Join(s.dir, "dev"), 0o755); err != nil {
		return fmt.Errorf("make a folder for the disk: %w", err)
	}
	// Blocks that were never written would cost the file system something that a disk does not pay.
	if err := writeSystem(s.disk(), s.size+streamSpare); err != nil {
		return err
	}
	unix.Sync()
	return nil
}

func (s *streaming) disk() string { return filepath.Join(s.dir, "dev", "sda") }

// writeSystem makes a file that packs about as well as an operating system without its empty space: each record is part
// new, part a copy of what came shortly before.
func writeSystem(name string, size int64) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("make an image: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const record, fresh = 64, 24
	noise := rand.NewChaCha8([32]byte{1})
	for block := make([]byte, 4<<20); size > 0; size -= int64(len(block)) {
		_, _ = noise.Read(block)
		for at := record; at < len(block); at += record {
			from := int(noise.Uint64() % uint64(at-record+1))
			copy(block[at+fresh:at+record], block[from:])
		}
		if _, err := f.Write(block); err != nil {
			return fmt.Errorf("write an image: %w", err)
		}
	}
	return nil
}

// digestOf reads the first bytes of a file, and leaves nothing of a disk in the page cache, where the next who writes
// past it would have to remove it.
func digestOf(name string, size int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, size); err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if filepath.Base(filepath.Dir(name)) == "dev" {
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			return "", fmt.Errorf("drop %s from the page cache: %w", name, err)
		}
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// run takes one way, checks what is on the disk then, and returns megabytes per second.
func (s *streaming) run(ctx context.Context, way string) (float64, error) {
	begin := time.Now()
	if script, ok := peers[way]; ok {
		ctx, stop := context.WithTimeout(ctx, streamFor)
		defer stop()
		if err := run(ctx, "bash", "-o", "pipefail", "-c", script, way, s.url, filepath.Join(s.dir, "image.raw"), s.disk()); err != nil {
			return 0, err
		}
	} else if err := s.agent(ctx, s.files[way]); err != nil {
		return 0, err
	}
	rate := float64(s.size) / 1e6 / time.Since(begin).Seconds()
	if way == netAlone || way == wireAlone {
		return rate, nil
	}
	digest, err := digestOf(s.disk(), s.size)
	if err == nil && digest != s.digest {
		err = fmt.Errorf("the disk has %s afterwards, and the image is %s", digest, s.digest)
	}
	if err != nil {
		return 0, err
	}
	// The next way must write something: nobody is to find its own bytes on the disk.
	return rate, run(ctx, "dd", "if=/dev/zero", "of="+s.disk(), "bs=4M", "count=2", "oflag=direct", "conv=notrunc,fsync", "status=none")
}

// narrow serves the image at wireRate, as a network would that is slower than the disk.
func (s *streaming) narrow(w http.ResponseWriter, _ *http.Request) {
	f, err := os.Open(filepath.Join(s.dir, "image.raw"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	w.Header().Set("Content-Length", strconv.FormatInt(s.size, 10))
	const part = 256 << 10
	begin := time.Now()
	for sent := int64(0); sent < s.size; sent += part {
		time.Sleep(time.Until(begin.Add(time.Duration(float64(sent) / wireRate * float64(time.Second)))))
		if _, err := io.CopyN(w, f, part); err != nil {
			return // who asked has gone, and says why
		}
	}
}

// agent does a write task as the agent does on a server.
func (s *streaming) agent(ctx context.Context, file wire.ImageFile) error {
	target := inventory.Disk{Name: filepath.Base(s.disk()), Serial: "bench", SizeBytes: s.size + streamSpare}
	w := write.New(write.Config{
		Disks: func(context.Context) ([]inventory.Disk, error) { return []inventory.Disk{target}, nil },
		Tree:  disk.Tree{Sys: filepath.Join(s.dir, "sys"), Dev: filepath.Dir(s.disk())},
	})
	report, err := w.Handler(ctx, wire.Task{ID: "bench", Kind: wire.Write, Write: &wire.WriteTask{Image: file}}, func(string, wire.Progress) {})
	if err == nil && (report.Write == nil || !report.Write.IsWritten) {
		err = fmt.Errorf("the agent reports that nothing is written: %s", report.Detail)
	}
	return err
}
