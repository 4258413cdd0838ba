//go:build brokers

package integration

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// How many backups are taken, and how often the gateway is killed meanwhile, at
// least.
const (
	stormBackups     = 8
	stormBackupKills = 10
)

// copied is a backup that is under way or done.
type copied struct {
	process *program
	file    string
	// promised are the messages that were acknowledged before it began.
	promised []string
}

// TestBackupsInAKillStormAreWhole takes one backup after the other while a client
// posts and the gateway is killed and started again, and starts a gateway on each.
func TestBackupsInAKillStormAreWhole(t *testing.T) {
	t.Parallel()
	g := newGateway(t, embeddedBrokers(t))
	g.start(t)
	s := &storm{g: g, posts: &backlog{}, publishes: &backlog{}}
	dir := t.TempDir()
	var backups []*copied
	var current *copied
	var request *post
	kills, posted := 0, 0
	killAt, backupAt := time.Now().Add(300*time.Millisecond), time.Now()
	for deadline := time.Now().Add(2 * time.Minute); len(backups) < stormBackups || kills < stormBackupKills; pause(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d backups and %d kills in two minutes", len(backups), kills)
		}
		if s.posts.left() < 2*stormBatch {
			for range 5 * stormBatch {
				s.posts.add(say(fmt.Sprintf("post-%d", posted), "poster", "in the storm"))
				posted++
			}
		}
		request = s.drivePosts(t, request)
		switch {
		case current == nil && time.Now().After(backupAt):
			current = s.backup(t, filepath.Join(dir, fmt.Sprintf("backup-%d.db", len(backups))))
		case current != nil && current.process.ended():
			if status := current.process.cmd.ProcessState.ExitCode(); status != 0 {
				t.Fatalf("a backup ends with %d:\n%s", status, current.process.said.tail(5))
			}
			backups = append(backups, current)
			current = nil
			backupAt = time.Now().Add(rand.N(600 * time.Millisecond))
		}
		if time.Now().After(killAt) {
			kills++
			g.crash()
			g.relaunch(t)
			killAt = time.Now().Add(200*time.Millisecond + rand.N(500*time.Millisecond))
		}
	}
	g.crash()
	if current != nil {
		current.process.kill()
	}
	if n := len(backups[len(backups)-1].promised); n == 0 {
		t.Fatal("nothing was acknowledged before the last backup")
	}
	for _, b := range backups {
		b.check(t)
	}
}

// backup starts a backup.
func (s *storm) backup(t *testing.T, file string) *copied {
	t.Helper()
	b := &copied{file: file}
	for _, a := range s.answers {
		b.promised = append(b.promised, a.ID)
	}
	b.process = start(t, launch{}, gatewayBinary, "backup", "--config", s.g.configFile(), file)
	return b
}

// check wants the copy sound, and a gateway on it that has what was promised.
func (b *copied) check(t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.file+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	var sound string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("%s: %q, %v", filepath.Base(b.file), sound, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, embeddedBrokers(t))
	if err := os.Mkdir(g.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.file, filepath.Join(g.dataDir(), "gateway.db")); err != nil {
		t.Fatal(err)
	}
	g.start(t)
	has := map[string]bool{}
	for _, e := range g.history(t, "") {
		has[e.id()] = true
	}
	for _, id := range b.promised {
		if !has[id] {
			t.Errorf("%s: %s was acknowledged before the backup began and is not in it", filepath.Base(b.file), id)
		}
	}
	g.post(t, say("after", "caller", "the copy goes on").String())
	g.stop(t)
}
