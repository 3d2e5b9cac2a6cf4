// SPDX-License-Identifier: Apache-2.0
// The state that processes share: locks and requests about auto boost.
#include "softgpu/model/clock_state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

namespace sonde::softgpu::model {
namespace {

namespace fs = std::filesystem;

class State : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/sonde-state-XXXXXX";
    directory = mkdtemp(path);
    setenv("SONDE_STATE_DIR", directory.c_str(), 1);
  }
  void TearDown() override {
    chmod(directory.c_str(), 0700);
    fs::remove_all(directory);
  }
  // The lock in the file, as a new process would see it.
  ClockLock inForce(uint32_t* owner = nullptr) {
    ClockLock lock{};
    uint32_t pid = 0;
    EXPECT_EQ(ClockError::none, ClockState("d").read(&lock, &pid, &message)) << message;
    if (owner) *owner = pid;
    return lock;
  }
  std::string file() const { return directory + "/clocks-d"; }
  std::string text() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // What `work` returns, done by another process.
  static int inChild(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string directory, message;
};

TEST_F(State, NothingIsMadeByLookingOrByUnlocking) {
  ClockState s("d");
  EXPECT_EQ(ClockLock::none, inForce());
  EXPECT_EQ(ClockError::none, s.unlock(&message));
  EXPECT_TRUE(s.boost().enabled);
  EXPECT_TRUE(fs::is_empty(directory));
}

TEST_F(State, AnEmptyFileIsUnlocked) {
  std::ofstream(file()).flush();
  EXPECT_EQ(ClockLock::none, inForce());
  ClockState s("d");
  EXPECT_EQ(ClockError::none, s.lock(ClockLock::base, &message)) << message;
  EXPECT_EQ("sonde-clocks 1 base " + std::to_string(getpid()) + "\n", text());
  EXPECT_EQ(0600u, fs::status(file()).permissions() == (fs::perms::owner_read | fs::perms::owner_write)
                       ? 0600u
                       : static_cast<unsigned>(fs::status(file()).permissions() & fs::perms::owner_all));
}

TEST_F(State, ADamagedFileIsNeitherReadNorOverwritten) {
  ClockState s("d");
  for (const char* rubbish :
       {"rubbish", "sonde-clocks 2 base 1\n", "sonde-clocks 1 turbo 1\n", "sonde-clocks 1 base"}) {
    std::ofstream(file()) << rubbish;
    ClockLock lock = ClockLock::floor;
    uint32_t owner = 77;
    EXPECT_EQ(ClockError::stateFile, s.read(&lock, &owner, &message)) << rubbish;
    EXPECT_EQ(ClockLock::floor, lock);  // as it was
    EXPECT_EQ(77u, owner);
    EXPECT_EQ("the clock state " + file() + " is damaged; remove the file to unlock the clocks", message);
    EXPECT_EQ(ClockError::stateFile, s.lock(ClockLock::base, &message));
    EXPECT_EQ(ClockError::stateFile, s.unlock(&message));
    EXPECT_EQ(rubbish, text());
    EXPECT_EQ(ClockError::none, s.reset(&message)) << message;
    EXPECT_EQ("sonde-clocks 1 none 0\n", text());
  }
}

TEST_F(State, AFolderThatCannotBeWritten) {
  // Not even root makes a folder here.
  setenv("SONDE_STATE_DIR", "/proc/sonde-clocks", 1);
  ClockState s("d");
  EXPECT_EQ(ClockLock::none, inForce());
  EXPECT_EQ(ClockError::stateFile, s.lock(ClockLock::base, &message));
  EXPECT_NE(std::string::npos, message.find("cannot make /proc/sonde-clocks for the clock state")) << message;
  EXPECT_EQ(ClockError::none, s.unlock(&message));

  setenv("SONDE_STATE_DIR", directory.c_str(), 1);
  chmod(directory.c_str(), 0555);
  EXPECT_EQ(0, inChild([&] {
              if (getuid() == 0 && setuid(65534) != 0) return 1;  // root may write anywhere
              ClockState readOnly("d");
              if (readOnly.lock(ClockLock::base, &message) != ClockError::stateFile) return 2;
              if (message.find("Permission denied") == std::string::npos) return 3;
              ClockLock lock = ClockLock::floor;
              uint32_t owner = 0;
              if (readOnly.read(&lock, &owner, &message) != ClockError::none || lock != ClockLock::none) return 4;
              return readOnly.unlock(&message) == ClockError::none ? 0 : 5;
            }));
}

TEST_F(State, OneLockAtATimeAndOnlyItsOwnerFreesIt) {
  ClockState s("d");
  ASSERT_EQ(ClockError::none, s.lock(ClockLock::boost, &message));
  EXPECT_EQ(ClockError::taken, s.lock(ClockLock::base, &message));
  EXPECT_EQ(0, inChild([&] {
              if (s.lock(ClockLock::base, &message) != ClockError::taken) return 1;
              return s.unlock(&message) == ClockError::none ? 0 : 2;  // does nothing
            }));
  uint32_t owner = 0;
  EXPECT_EQ(ClockLock::boost, inForce(&owner));
  EXPECT_EQ(static_cast<uint32_t>(getpid()), owner);
  EXPECT_EQ(ClockError::none, s.unlock(&message));
  EXPECT_EQ(ClockLock::none, inForce());
}

// The owner is gone: its lock stays, nobody's unlock frees it, reset does.
TEST_F(State, ALockWithoutItsOwnerStays) {
  EXPECT_EQ(0, inChild([&] { return ClockState("d").lock(ClockLock::base, &message) == ClockError::none ? 0 : 1; }));
  ClockState s("d");
  EXPECT_EQ(ClockError::taken, s.lock(ClockLock::boost, &message));
  EXPECT_EQ(ClockError::none, s.unlock(&message));
  EXPECT_EQ(ClockLock::base, inForce());
  EXPECT_EQ(ClockError::none, s.reset(&message));
  EXPECT_EQ(ClockLock::none, inForce());
}

// All begin when the pipe is closed; each says by its status whether it made the lock.
TEST_F(State, OfProcessesThatRaceOneMakesTheLock) {
  for (int round = 0; round < 50; ++round) {
    int go[2];
    ASSERT_EQ(0, pipe(go));
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        close(go[1]);
        char byte;
        (void)!read(go[0], &byte, 1);
        const ClockError e = ClockState("d").lock(i % 2 ? ClockLock::base : ClockLock::boost, &message);
        _exit(e == ClockError::none ? 1 : e == ClockError::taken ? 0 : 100);
      }
      children.push_back(child);
    }
    close(go[0]);
    close(go[1]);
    int made = 0;
    pid_t maker = 0;
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(child, waitpid(child, &status, 0));
      made += WEXITSTATUS(status);
      if (WEXITSTATUS(status) == 1) maker = child;
    }
    EXPECT_EQ(1, made);
    uint32_t owner = 0;
    EXPECT_NE(ClockLock::none, inForce(&owner));
    EXPECT_EQ(static_cast<uint32_t>(maker), owner);
    ASSERT_EQ(ClockError::none, ClockState("d").reset(&message));
  }
}

// ------------------------------------------------------------- auto boost --

TEST_F(State, ARequestAboutBoostEndsWithItsProcess) {
  ClockState s("d");
  EXPECT_FALSE(s.boost().requester.has_value());
  int ready[2], end[2];
  ASSERT_EQ(0, pipe(ready));
  ASSERT_EQ(0, pipe(end));
  const pid_t child = fork();
  if (child == 0) {
    close(end[1]);
    ClockState mine("d");
    char byte = mine.requestBoost(false, &message) == ClockError::none && !mine.boost().enabled &&
                        mine.boost().requester == static_cast<uint32_t>(getpid())
                    ? '1'
                    : '0';
    (void)!write(ready[1], &byte, 1);
    (void)!read(end[0], &byte, 1);
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(1, read(ready[0], &byte, 1));
  EXPECT_EQ('1', byte);
  EXPECT_FALSE(s.boost().enabled);
  EXPECT_EQ(static_cast<uint32_t>(child), s.boost().requester);
  // One that wants it off outweighs one that wants it on.
  EXPECT_EQ(ClockError::none, s.requestBoost(true, &message)) << message;
  EXPECT_FALSE(s.boost().enabled);
  EXPECT_EQ(static_cast<uint32_t>(child), s.boost().requester);
  close(end[1]);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(s.boost().enabled);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), s.boost().requester);
  // The child of a fork is another process: the request is not its own, but it sees it.
  const uint32_t parent = static_cast<uint32_t>(getpid());
  EXPECT_EQ(0, inChild([&] { return s.boost().requester == parent ? 0 : 1; }));
}

}  // namespace
}  // namespace sonde::softgpu::model
