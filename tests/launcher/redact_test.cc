#include "launcher/diagnose/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "launcher/diagnose/secret_words.h"

namespace antdt::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SecretWords, KnowTheNamesOfSecrets) {
  for (const char* name : {"HF_TOKEN", "db-password", "aws_secret_access_key", "WANDB_API_KEY",
                           "apiKey", "--auth-token", "X-Api-Key", "Authorization", "SSH_KEY"}) {
    EXPECT_TRUE(names_secret(name)) << name;
  }
  for (const char* name : {"tokens", "max_tokens", "tokenizer", "keys", "key", "NCCL_DEBUG",
                           "monkey", "secretary", "PWD", "cluster.keys"}) {
    EXPECT_FALSE(names_secret(name)) << name;
  }
}

TEST(SecretWords, KnowTheFormsOfTokens) {
  EXPECT_TRUE(looks_secret("ghp_0123456789abcdefghij"));
  EXPECT_TRUE(looks_secret("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"));
  EXPECT_FALSE(looks_secret("sk-learn"));
  EXPECT_FALSE(looks_secret("eyJhbGciOiJIUzI1NiJ9"));
}

TEST(Redactor, RemovesTheValuesOfNamesThatStandForSecrets) {
  const Redactor redactor;
  EXPECT_EQ(redactor.text("HF_TOKEN=abc next"), "HF_TOKEN=(removed) next");
  EXPECT_EQ(redactor.text("train.py --api-key abc --lr 0.1"),
            "train.py --api-key (removed) --lr 0.1");
  EXPECT_EQ(redactor.text("{'db_password': 'a b', 'n': 1}"),
            "{'db_password': '(removed)', 'n': 1}");
  EXPECT_EQ(redactor.text("Authorization: Bearer abc.def\nok"), "Authorization: (removed)\nok");
  EXPECT_EQ(redactor.text("sent Bearer abc"), "sent Bearer (removed)");
  EXPECT_EQ(redactor.text("passphrase: \"a \\\" b\" c"), "passphrase: \"(removed)\" c");
}

TEST(Redactor, FindsValuesInTextsThatAreEscapedInOtherTexts) {
  const Redactor redactor;
  EXPECT_EQ(redactor.text(R"(sent "{\"password\": \"a, b\", \"n\": 1}")"),
            R"(sent "{\"password\": \"(removed)\", \"n\": 1}")");
}

TEST(Redactor, LeavesWhatIsNoSecret) {
  const Redactor redactor;
  for (const char* text :
       {"step 12: loss 0.5, 300 tokens/s", "https://host:8080/path", "the token ring",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n", "--password", "key=3"}) {
    EXPECT_EQ(redactor.text(text), text);
  }
}

TEST(Redactor, RemovesUsersOfUrlsTokensAndPrivateKeys) {
  const Redactor redactor;
  EXPECT_EQ(redactor.text("postgres://u:p@db/x"), "postgres://(removed)@db/x");
  EXPECT_EQ(redactor.text("pushed to a=hf_0123456789abcdefghij"), "pushed to a=(removed)");
  EXPECT_EQ(
      redactor.text("a\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nb"),
      "a\n(removed)\nb");
  EXPECT_EQ(redactor.text("a\n-----BEGIN PRIVATE KEY-----\nx"), "a\n(removed)");
}

TEST(Redactor, RemovesTheRestOfAPrivateKeyWhoseBeginningWasCutOff) {
  const Redactor redactor;
  EXPECT_EQ(redactor.text("step 1 is done\nabcd\nefgh\n-----END PRIVATE KEY-----\nstep 2"),
            "step 1 is done\n(removed)\nstep 2");
  EXPECT_EQ(redactor.text("abcd\n-----END PRIVATE KEY-----"), "(removed)");
}

TEST(Redactor, RedactsTwiceAsOnce) {
  const Redactor redactor;
  const std::string once = redactor.text("token=abc {\"secret\": \"x\"} ftp://u:p@h Bearer abc");
  EXPECT_EQ(redactor.text(once), once);
}

TEST(Redactor, ForgetsWhatTheConfigurationCallsASecretWhereverItOccurs) {
  Redactor redactor;
  const auto configuration = redactor.configuration(R"({
      "job": {"name": "demo"},
      "roles": {"worker": {
        "command": ["python3", "train.py", "--api-key", "argument-secret", "--db=ftp://me:url-secret@h/"],
        "env": {"MY_TOKEN": "word", "MODE": "fast", "LICENSE": "4711-0815", "NCCL_DEBUG": "INFO",
                "DATA": "/data/clicks"}}},
      "user": {"password": 123456789, "note": "argument-secret again"}})");
  ASSERT_TRUE(configuration) << configuration.error().message;
  const auto json = nlohmann::json::parse(*configuration);
  EXPECT_EQ(json["job"]["name"], "demo");
  EXPECT_EQ(json["roles"]["worker"]["env"]["NCCL_DEBUG"], "INFO");
  EXPECT_EQ(json["user"]["note"], "(removed) again");
  for (const char* secret :
       {"argument-secret", "url-secret", "word", "fast", "4711", "123456789", "clicks"}) {
    EXPECT_THAT(*configuration, Not(HasSubstr(std::string("\"") + secret))) << secret;
  }
  EXPECT_THAT(redactor.variables(), ElementsAre("MY_TOKEN", "MODE", "LICENSE", "DATA"));
  EXPECT_EQ(redactor.text("with argument-secret, url-secret, 4711-0815 and 123456789"),
            "with (removed), (removed), (removed) and (removed)");
  EXPECT_EQ(redactor.text("fast, /data/clicks"), "fast, /data/clicks");
}

TEST(Redactor, RedactsLinesOfJsonAndKeepsThemJson) {
  const Redactor redactor;
  EXPECT_EQ(redactor.json_lines(
                "{\"text\":\"w1 said \\\"token=abc\\\"\",\"time_s\":1.5}\n{\"text\":\"tok"),
            "{\"text\":\"w1 said \\\"token=(removed)\\\"\",\"time_s\":1.5}\n{\"text\":\"tok\n");
}

TEST(Redactor, RefusesAConfigurationThatIsNone) {
  Redactor redactor;
  EXPECT_EQ(redactor.configuration("[1]").error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(redactor.configuration("{").error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace antdt::launcher
