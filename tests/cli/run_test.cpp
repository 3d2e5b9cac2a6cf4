// SPDX-License-Identifier: Apache-2.0
// The program and its collector from outside, against a libcupti and an
// application made for it: each way in which a process can end, and what the
// user sees then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "process.h"

namespace {

namespace fs = std::filesystem;
using sonde::test::Environment;
using sonde::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kApp = STAND_IN_APP;

class Run : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "sonde-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    fs::create_directories(folder_ + "/lib64/softgpu");
    fs::create_directories(folder_ + "/tmp");
    fs::create_symlink(COLLECTOR, folder_ + "/lib64/libsonde-collector.so");
    fs::create_symlink(STAND_IN_CUPTI, folder_ + "/lib64/libcupti.so.13");
    std::ofstream(folder_ + "/lib64/softgpu/libcuda.so.1") << "only looked for, never loaded here";
    environment_["SONDE_LIBDIR"] = folder_ + "/lib64";
    environment_["TMPDIR"] = folder_ + "/tmp";
  }
  void TearDown() override {
    // Whatever happened, no spool stays behind.
    EXPECT_TRUE(fs::is_empty(folder_ + "/tmp"));
    fs::remove_all(folder_);
  }

  Outcome sonde(std::vector<std::string> arguments, void (*ready)(pid_t) = nullptr) {
    arguments.insert(arguments.begin(), SONDE);
    return sonde::test::runProgram(arguments, environment_, ready);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder_;
  Environment environment_;
};

TEST_F(Run, SummaryOfAProgram) {
  const Outcome o = sonde({"run", kApp, "many", "2"});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.out, AllOf(HasSubstr("** CUDA API Summary (cuda_api_sum)"), HasSubstr("6.000 us          3  2.000 us"),
                           HasSubstr("15.000 us          3  5.000 us"), HasSubstr("saxpy(int, float, float*, float*)"),
                           HasSubstr("3.000 MB      3"), HasSubstr("\nRecords: 12 collected, 0 lost\n")));
  EXPECT_THAT(o.out, Not(HasSubstr("cuLaunchKernel")));
  EXPECT_THAT(o.out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(o.err, HasSubstr("sonde: profiling "));
}

TEST_F(Run, CsvIsNanosecondsAndNothingElseOnStdout) {
  const Outcome o = sonde({"run", "--csv", "-r", "cuda_gpu_kern_sum:base", kApp});
  EXPECT_EQ(o.out,
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
            "100.0,5000,1,5000.0,5000.0,5000,5000,0.0,saxpy\n");
  EXPECT_THAT(o.err, HasSubstr("Records: 4 collected, 0 lost"));
}

TEST_F(Run, ExitStatusIsTheApplications) {
  EXPECT_EQ(sonde({"run", kApp, "return", "7"}).status, 7);
  EXPECT_EQ(sonde({"run", "--", kApp, "no-cuda"}).status, 0);
  EXPECT_EQ(sonde({"run", "/nonexistent/program"}).status, 127);
  EXPECT_EQ(sonde({"run", "no-such-program-in-path"}).status, 127);
  EXPECT_EQ(sonde({"run", file("lib64/softgpu/libcuda.so.1")}).status, 126);  // not executable
  EXPECT_EQ(sonde({"run", "--no-such-option", kApp}).status, 125);
  EXPECT_EQ(sonde({"run"}).status, 125);
  EXPECT_EQ(sonde({"frobnicate"}).status, 125);
}

TEST_F(Run, ANameThatIsNoProgramInPath) {
  std::filesystem::create_directories(file("path/thing"));
  environment_["PATH"] = file("path") + ":/usr/bin:/bin";
  const Outcome folder = sonde({"run", "thing"});  // execvp: EACCES, as of a folder that may not be searched
  EXPECT_EQ(folder.status, 127);
  EXPECT_THAT(folder.err, HasSubstr("thing: there is no such program"));
  std::ofstream(file("path/text")) << "no program";
  EXPECT_EQ(sonde({"run", "text"}).status, 126);
}

// As on a full disk: the file of records may not grow, but what was lost is counted in it.
TEST_F(Run, RecordsThatCannotBeWrittenAreCounted) {
  const Outcome o = sonde::test::runProgram(
      {"/bin/sh", "-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" run --buffer-kb 64 \"$1\" many 3000", SONDE, kApp},
      environment_);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("records are lost: cannot write the spool: File too large"));
  EXPECT_THAT(o.err, HasSubstr(" RECORDS WERE LOST in process "));
  EXPECT_EQ(o.out.find(", 0 lost"), std::string::npos) << o.out;
  EXPECT_EQ(o.err.find("did not end in order"), std::string::npos) << o.err;
  EXPECT_EQ(o.err.find("damaged"), std::string::npos) << o.err;
}

TEST_F(Run, AFolderForRecordsThatIsNotThere) {
  environment_["TMPDIR"] = file("nowhere");
  const Outcome o = sonde({"run", kApp});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("cannot create a folder for the records in " + file("nowhere") +
                               ": No such file or directory; set TMPDIR to another place"));
}

TEST_F(Run, WhyAFileCannotBeRun) {
  namespace fs = std::filesystem;
  const auto make = [&](const std::string& name, std::string_view content) {
    std::ofstream(file(name), std::ios::binary) << content;
    fs::permissions(file(name), fs::perms::owner_all);
    return file(name);
  };
  const auto refused = [&](const std::string& path, const std::string& why) {
    const Outcome o = sonde({"run", path});
    EXPECT_EQ(o.status, 126) << path;
    EXPECT_THAT(o.err, HasSubstr(path + " cannot be run: " + why));
    EXPECT_EQ(o.err.find("profiling"), std::string::npos) << o.err;
  };
  refused(folder_, "it is a folder");
  fs::permissions(make("plain", "some words"), fs::perms::owner_read);
  refused(file("plain"), "it is not an executable file (chmod +x makes it one)");
  refused(make("script", "#! /no/such/shell -x\n"), "'/no/such/shell', which it is to be started with, does not exist");

  std::ifstream in(kApp, std::ios::binary);
  const std::string app((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::string other = app;
  other[18] = static_cast<char>(183);  // e_machine
  refused(make("other", other), "it is a program for AArch64, and this machine is x86-64");
  other[18] = static_cast<char>(190);
  refused(make("cubin", other), "it is a program for a GPU (machine code of CUDA), and this machine is x86-64");
  other = app;
  const size_t loader = other.find("/lib64/ld-linux-x86-64.so.2");
  ASSERT_NE(loader, std::string::npos);
  other[loader + 1] = 'L';
  refused(make("loader", other), "'/Lib64/ld-linux-x86-64.so.2', which it is to be started with, does not exist");
  refused(make("short", app.substr(0, 20)), "it is no program for this system, or only a part of one");
  refused(make("data", std::string("MZ\0\1", 4)), "it is no program for this system, or only a part of one");

  // A script without a first line is one for the shell, as everywhere.
  EXPECT_EQ(sonde({"run", make("commands", "exit 9\n")}).status, 9);
}

TEST_F(Run, AWrongValueIsNamed) {
  const auto said = [&](const char* option, const char* value) { return sonde({"run", option, value, kApp}).err; };
  EXPECT_EQ(said("--device", "foo"), "sonde: error: --device: foo not in {software,real,auto} (--help says more)\n");
  EXPECT_EQ(said("-t", "-3"), "sonde: error: --timeout: so many seconds, not -3 (--help says more)\n");
  EXPECT_EQ(said("-t", "soon"), "sonde: error: --timeout: so many seconds, not soon (--help says more)\n");
  EXPECT_THAT(said("--environment-ms", "0"), HasSubstr("--environment-ms: Value 0 not in range 1 to 3600000"));
}

TEST_F(Run, AWrongCommandIsNamed) {
  EXPECT_THAT(sonde({"frobnicate"}).err,
              HasSubstr("there is no command 'frobnicate'; there are run, source, report, export"));
  const Outcome program = sonde({kApp});
  EXPECT_EQ(program.status, 125);
  EXPECT_THAT(program.err, HasSubstr("To profile it: sonde run " + kApp));
  const Outcome nothing = sonde({});
  EXPECT_EQ(nothing.status, 125);
  EXPECT_THAT(nothing.err, AllOf(HasSubstr("Subcommands:"), HasSubstr("sonde run ./app")));
}

TEST_F(Run, ArgumentsOfTheApplicationAreItsOwn) {
  EXPECT_EQ(sonde({"run", kApp, "print", "--csv", "-o", "x", "--help"}).out, "[--csv][-o][x][--help]\n");
  EXPECT_EQ(sonde({"run", "--csv", "--", kApp, "print", "--", "-q", ""}).out, "[--][-q][]\n");
  EXPECT_EQ(sonde({"run", kApp, "print", "--", "y"}).out, "[--][y]\n");
}

TEST_F(Run, AProgramWithoutCudaIsSaidToBeOne) {
  const Outcome o = sonde({"run", kApp, "no-cuda"});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.err, HasSubstr("nothing was recorded: the application never initialised CUDA"));
}

// ------------------------------------------------------ how processes end --

TEST_F(Run, UnderscoreExitLosesNothing) {
  const Outcome o = sonde({"run", "--csv", "-r", "cuda_gpu_kern_sum", kApp, "_exit", "9"});
  EXPECT_EQ(o.status, 9);
  EXPECT_THAT(o.err, HasSubstr("Records: 4 collected, 0 lost"));
}

TEST_F(Run, ALibraryFolderWithASpaceInItsNameIsPreloadedToo) {
  fs::rename(file("lib64"), file("my libraries: all"));
  environment_["SONDE_LIBDIR"] = file("my libraries: all");
  const Outcome o = sonde({"run", kApp, "_exit", "9"});  // only what is preloaded sees _exit
  EXPECT_EQ(o.status, 9);
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
  EXPECT_THAT(o.err, Not(HasSubstr("ld.so")));
}

TEST_F(Run, QuickExitLosesNothing) {
  EXPECT_THAT(sonde({"run", kApp, "quick_exit"}).out, HasSubstr("Records: 4 collected"));
}

TEST_F(Run, FatalSignalsLoseNothing) {
  for (const auto& [how, number] :
       {std::pair("segv", SIGSEGV), std::pair("abort", SIGABRT), std::pair("term", SIGTERM)}) {
    const Outcome o = sonde({"run", kApp, how});
    EXPECT_EQ(o.status, 128 + number) << how;
    EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost")) << how;
    const size_t said = o.err.find("ended by signal " + std::to_string(number));
    EXPECT_NE(said, std::string::npos) << o.err;
    EXPECT_EQ(o.err.find("ended by signal", said + 1), std::string::npos) << o.err;  // once
  }
}

TEST_F(Run, AHandlerOfTheProgramThatLeavesByExitLosesNothing) {
  const Outcome o = sonde({"run", kApp, "own-handler"});
  EXPECT_EQ(o.status, 77);
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
}

TEST_F(Run, AfterSigkillWhatWasDeliveredIsThere) {
  const Outcome o = sonde({"run", kApp, "kill9"});
  EXPECT_EQ(o.status, 128 + SIGKILL);
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
  EXPECT_THAT(o.err, HasSubstr("did not end in order"));
}

TEST_F(Run, ExecKeepsBothImages) {
  const Outcome o = sonde({"run", kApp, "exec"});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.out, HasSubstr("Records: 8 collected from 2 processes, 0 lost"));
}

TEST_F(Run, AForkedChildLeavesTheFileAlone) {
  const Outcome o = sonde({"run", kApp, "fork"});
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
  EXPECT_THAT(o.err, Not(HasSubstr("damaged")));
}

TEST_F(Run, ChildrenHaveTheirOwn) {
  const Outcome o = sonde({"run", "-o", file("t-%p.sonde"), kApp, "fork-exec"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("Records: 8 collected from 2 processes, 0 lost"));
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) files += entry.path().extension() == ".sonde";
  EXPECT_EQ(files, 2);
}

TEST_F(Run, ATimeoutEndsTheApplication) {
  const Outcome o = sonde({"run", "--timeout", "0.3", kApp, "sleep"});
  EXPECT_EQ(o.status, 128 + SIGTERM);
  EXPECT_THAT(o.err, HasSubstr("stopped after 0.3 s"));
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
}

TEST_F(Run, ATerminatedSondeTerminatesTheApplicationAndStillReports) {
  const Outcome o = sonde({"run", kApp, "sleep"}, [](pid_t pid) { ::kill(pid, SIGTERM); });
  EXPECT_EQ(o.status, 128 + SIGTERM);
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
}

// The reader of a pipe may go; TearDown sees that no spool stays behind.
TEST_F(Run, AClosedPipeLeavesNothing) {
  const std::string command = std::string(SONDE) + " run -q --print-gpu-trace " + kApp + " many 5000 | head -n 1";
  const Outcome o = sonde::test::runProgram({"/bin/bash", "-c", command}, environment_);
  EXPECT_EQ(o.status, 0);
}

// -------------------------------------------------------------- collection --

TEST_F(Run, EnvironmentIsAveraged) {
  EXPECT_EQ(sonde({"run", "--csv", "-r", "environment_sum", kApp, "environment"}).out,
            "Device,Quantity,Samples,Avg,Min,Max\n"
            "GPU 0,SM clock (MHz),2,1200.0,1000.0,1400.0\n"
            "GPU 0,Memory clock (MHz),2,2000.0,2000.0,2000.0\n"
            "GPU 0,Temperature (C),2,40.5,40.0,41.0\n"
            "GPU 0,Power (W),2,101.0,100.5,101.5\n"
            "GPU 0,Power limit (W),2,350.0,350.0,350.0\n"
            "GPU 0,Clocks held by power cap (% of samples),1,50.0,,\n");
  // Two samples that were not idle differ.
  EXPECT_THAT(
      sonde({"run", "--csv", "-r", "environment_sum", kApp, "environment"}).err,
      HasSubstr("sonde: warning: the SM clock of GPU 0 moved between 1000 and 1400 MHz while it worked, and all "
                "times depend on it: repeated runs can differ. --lock-clocks base holds it still"));
  EXPECT_THAT(sonde({"run", "--devices", "1", kApp, "environment"}).err, Not(HasSubstr("moved")));
  EXPECT_THAT(sonde({"run", kApp, "environment-still"}).err, Not(HasSubstr("moved")));
  // With the usual reports, when there is something to say.
  EXPECT_THAT(sonde({"run", kApp, "environment"}).out, HasSubstr("(environment_sum)"));
  EXPECT_THAT(sonde({"run", kApp}).out, Not(HasSubstr("(environment_sum)")));
}

TEST_F(Run, LostRecordsAreShouted) {
  const Outcome o = sonde({"run", kApp, "drop"});
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 17 lost"));
  EXPECT_THAT(o.err, HasSubstr("sonde: warning: 17 RECORDS WERE LOST"));
}

TEST_F(Run, ManySmallBuffersKeepEverything) {
  const Outcome o = sonde({"run", "--buffer-kb", "4", kApp, "many", "5000"});
  EXPECT_THAT(o.out, HasSubstr("Records: 20,004 collected, 0 lost"));
}

TEST_F(Run, ALibraryThatCannotFlushByItselfIsFlushed) {
  environment_["STAND_IN_NO_PERIOD"] = "1";
  // The application sleeps until it is killed; what it did must arrive meanwhile.
  const Outcome o = sonde({"run", "--flush-ms", "20", "--timeout", "0.5", kApp, "sleep"});
  EXPECT_THAT(o.out, HasSubstr("Records: 4 collected, 0 lost"));
}

TEST_F(Run, ProfileFromStartOffWaitsForTheProgram) {
  const Outcome o =
      sonde({"run", "--profile-from-start", "off", "--csv", "-r", "cuda_gpu_trace", kApp, "profiler-api"});
  EXPECT_THAT(o.err, HasSubstr("Records: 4 collected, 0 lost"));
  EXPECT_THAT(o.out, HasSubstr("\n3000,5000,3,4,2,1,128,1,1,32,"));  // only the second of three
  EXPECT_THAT(sonde({"run", kApp, "profiler-api"}).out, HasSubstr("Records: 12 collected"));
}

TEST_F(Run, TraceChoosesTheKinds) {
  EXPECT_THAT(sonde({"run", "--trace", "gpu", kApp}).out,
              AllOf(HasSubstr("Records: 2 collected"), HasSubstr("no CUDA API calls were recorded")));
  const Outcome wrong = sonde({"run", "--trace", "cuda,gpus", kApp});
  EXPECT_EQ(wrong.status, 125);
  EXPECT_THAT(wrong.err, HasSubstr("unknown 'gpus'"));
}

TEST_F(Run, TheSoftwareGpuComesFirstUnlessTheRealOneIsWanted) {
  environment_["LD_LIBRARY_PATH"] = "/somewhere";
  const std::string soft = sonde({"run", "-q", "/usr/bin/env"}).out;
  EXPECT_THAT(soft, HasSubstr("\nLD_LIBRARY_PATH=" + folder_ + "/lib64/softgpu:" + folder_ + "/lib64:/somewhere\n"));
  EXPECT_THAT(soft, HasSubstr("\nCUDA_INJECTION64_PATH=" + folder_ + "/lib64/libsonde-collector.so\n"));
  EXPECT_THAT(sonde({"run", "-q", "--device", "real", "/usr/bin/env"}).out,
              HasSubstr("\nLD_LIBRARY_PATH=/somewhere\n"));
  EXPECT_THAT(sonde({"run", "-q", "--preload", "off", "/usr/bin/env"}).out, Not(HasSubstr("LD_PRELOAD")));
}

TEST_F(Run, AToolThatIsThereAlreadyIsCalledToo) {
  environment_["CUDA_INJECTION64_PATH"] = STAND_IN_INJECTION;
  const Outcome o = sonde({"run", kApp});
  EXPECT_THAT(o.out, AllOf(HasSubstr("the other tool\n"), HasSubstr("Records: 4 collected")));
  EXPECT_THAT(o.err, HasSubstr("the collector goes first and then calls it"));
}

TEST_F(Run, AnotherCuptiIsUsed) {
  fs::copy_file(STAND_IN_CUPTI, file("other-cupti.so"));
  EXPECT_THAT(sonde({"run", "--cupti", file("other-cupti.so"), kApp}).out, HasSubstr("Records: 4 collected"));
  const Outcome missing = sonde({"run", "--cupti", file("nothing.so"), kApp});
  EXPECT_EQ(missing.status, 125);
  std::ofstream(file("broken.so")) << "no library";
  const Outcome broken = sonde({"run", "--cupti", file("broken.so"), kApp});
  EXPECT_THAT(broken.err, HasSubstr("== sonde: nothing is profiled:"));
  EXPECT_EQ(broken.status, 91);                // the application's: it ran
  environment_["STAND_IN_NO_REGISTER"] = "1";  // as a library of another driver
  const Outcome other = sonde({"run", "--cupti", file("other-cupti.so"), kApp});
  EXPECT_THAT(other.err, AllOf(HasSubstr("other-cupti.so: cuptiActivityRegisterCallbacks: "),
                               HasSubstr("NVIDIA's with --device real"), Not(HasSubstr("killed?"))));
}

// ------------------------------------------------------------------- files --

TEST_F(Run, OutputsOfEachFormat) {
  const Outcome o = sonde({"run", "-o", file("t"), "--export", "sonde,perfetto,sqlite,chrome,csv,json", kApp});
  EXPECT_EQ(o.status, 0) << o.err;
  for (const char* name : {"t.sonde", "t.pftrace", "t.sqlite", "t.chrome.json", "t.csv", "t.json"})
    EXPECT_GT(fs::file_size(file(name)), 100u) << name;
  EXPECT_THAT(o.err, HasSubstr("https://ui.perfetto.dev"));
  const Outcome again = sonde({"run", "-o", file("t"), "--export", "csv", kApp, "print", "ran"});
  EXPECT_EQ(again.status, 125);
  EXPECT_THAT(again.err, HasSubstr("exists already; -f replaces it"));
  EXPECT_THAT(again.out, Not(HasSubstr("ran")));  // found before the application ran
  EXPECT_EQ(sonde({"run", "-f", "-o", file("t"), "--export", "csv", kApp}).status, 0);
}

TEST_F(Run, WhatCannotBeWrittenIsFoundBeforeTheApplicationRuns) {
  const auto refused = [&](const std::string& path) {
    const Outcome o = sonde({"run", "-f", "-o", path, kApp, "print", "ran"});
    EXPECT_EQ(o.status, 125) << path;
    EXPECT_THAT(o.out, Not(HasSubstr("ran"))) << path;
    return o.err;
  };
  EXPECT_THAT(refused(file("no/t.csv")), HasSubstr("there is no folder"));
  ASSERT_EQ(::mkfifo(file("pipe.csv").c_str(), 0600), 0);
  EXPECT_THAT(refused(file("pipe.csv")), HasSubstr("pipe.csv is not a file"));  // else it would be replaced by one
  fs::create_directory(file("t.csv"));
  EXPECT_THAT(refused(file("t.csv")), HasSubstr("is a folder"));
  if (::geteuid() == 0) return;  // may write everywhere
  EXPECT_THAT(refused("/usr/t.csv"), HasSubstr("/usr/t.csv cannot be created: Permission denied"));
}

TEST_F(Run, WhenAnOutputCannotBeWrittenTheRecordsAreKept) {
  fs::create_directory(file("gone"));
  const std::string command =
      "cd '" + folder_ + "' && exec '" SONDE "' run -o gone/t.csv sh -c 'rmdir gone; exec \"$0\"' '" + kApp + "'";
  const Outcome o = sonde::test::runProgram({"/bin/sh", "-c", command}, environment_);
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("cannot create gone/t.csv: No such file or directory"));
  const size_t at = o.err.find("the records are kept in ./sonde-");
  ASSERT_NE(at, std::string::npos) << o.err;
  const std::string kept = o.err.substr(at + 26, o.err.find(".sonde", at) + 6 - at - 26);
  EXPECT_THAT(sonde({"report", file(kept)}).out, HasSubstr("Records: 4 collected"));
}

TEST_F(Run, ReportOfAFileIsTheReportOfTheRun) {
  const Outcome run = sonde({"run", "-o", file("t.sonde"), "--units", "ns", kApp, "many", "3"});
  const Outcome report = sonde({"report", "--units", "ns", file("t.sonde")});
  EXPECT_EQ(report.status, 0);
  EXPECT_EQ(report.out, run.out);
  const Outcome exported = sonde({"export", file("t.sonde")});
  EXPECT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(fs::exists(file("t.pftrace")));
}

TEST_F(Run, ATruncatedFileIsReportedAsFarAsItGoes) {
  sonde({"run", "--buffer-kb", "4", "-o", file("t.sonde"), kApp, "many", "100"});
  const auto size = fs::file_size(file("t.sonde"));
  fs::resize_file(file("t.sonde"), size / 2);
  const Outcome o = sonde({"report", file("t.sonde")});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.err, AllOf(HasSubstr("bytes of the trace are damaged"), HasSubstr("records were recovered")));
  EXPECT_THAT(o.out, HasSubstr("saxpy"));
  std::ofstream(file("text.sonde")) << "hello";
  const Outcome text = sonde({"report", file("text.sonde")});
  EXPECT_EQ(text.status, 125);
  EXPECT_THAT(text.err, HasSubstr("is not a Sonde trace"));
}

TEST_F(Run, PatternsInNames) {
  environment_["RANK"] = "3";
  EXPECT_EQ(sonde({"run", "-o", file("r-%q{RANK}.csv"), kApp}).status, 0);
  EXPECT_TRUE(fs::exists(file("r-3.csv")));
  const Outcome unset = sonde({"run", "-o", file("r-%q{NO_SUCH_VARIABLE}.csv"), kApp});
  EXPECT_EQ(unset.status, 125);
  EXPECT_THAT(unset.err, HasSubstr("NO_SUCH_VARIABLE"));
  EXPECT_EQ(sonde({"run", "-o", file("%z.csv"), kApp}).status, 125);
}

TEST_F(Run, ALogFileTakesResultsAndMessages) {
  const Outcome o = sonde({"run", "--log-file", file("log"), kApp});
  EXPECT_EQ(o.out, "");
  EXPECT_EQ(o.err, "");
  EXPECT_THAT(content("log"), AllOf(HasSubstr("sonde: profiling"), HasSubstr("Records: 4 collected")));
}

TEST_F(Run, QuietSaysOnlyWhatIsWrong) {
  EXPECT_EQ(sonde({"run", "-q", kApp}).err, "");
  EXPECT_THAT(sonde({"run", "-q", kApp, "drop"}).err, HasSubstr("LOST"));
}

TEST_F(Run, ColoursOnlyWhenWanted) {
  environment_["CLICOLOR_FORCE"] = "1";
  EXPECT_THAT(sonde({"run", kApp}).out, HasSubstr("\x1b[1m"));
  environment_["NO_COLOR"] = "1";
  EXPECT_THAT(sonde({"run", kApp}).out, Not(HasSubstr("\x1b[")));
}

// ---------------------------------------------------------------- the rest --

TEST_F(Run, EachCommandHasHelpWithAnExample) {
  for (const char* command : {"run", "source", "report", "export", "clocks", "devices", "version", "completion"}) {
    const Outcome o = sonde({command, "--help"});
    EXPECT_EQ(o.status, 0);
    EXPECT_THAT(o.out, HasSubstr("Example")) << command;
  }
  EXPECT_THAT(sonde({"--version"}).out, testing::StartsWith("sonde "));
}

TEST_F(Run, CompletionsAreScripts) {
  const Outcome bash = sonde({"completion", "bash"});
  EXPECT_THAT(bash.out, AllOf(HasSubstr("--print-gpu-trace"), HasSubstr("complete -o filenames -F _sonde sonde")));
  std::ofstream(file("c.sh")) << bash.out;
  EXPECT_EQ(sonde::test::runProgram({"/bin/bash", "-n", file("c.sh")}).status, 0);
  EXPECT_THAT(sonde({"completion", "fish"}).out, HasSubstr("__fish_seen_subcommand_from run"));
  EXPECT_EQ(sonde({"completion", "cmd.exe"}).status, 125);
}

TEST_F(Run, TheManualNamesEveryOption) {
  std::ifstream in(MANUAL);
  const std::string manual{std::istreambuf_iterator<char>(in), {}};
  ASSERT_FALSE(manual.empty());
  for (const char* command : {"run", "report", "export", "clocks", "devices"}) {
    std::string help = sonde({command, "--help"}).out;
    help.resize(std::min(help.size(), help.find("Examples:")));
    for (size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      size_t end = at + 2;
      while (end < help.size() && (std::isalnum(static_cast<unsigned char>(help[end])) || help[end] == '-')) end++;
      std::string option = help.substr(at, end - at);
      if (option.size() <= 2) continue;
      std::string escaped;
      for (const char c : option) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_THAT(manual, HasSubstr(escaped)) << command;
      at = end - 2;
    }
  }
}

}  // namespace
