#include "store/gateway_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace antdt::store {
namespace {

using testing::HasSubstr;

TEST(GatewayJson, AChangeIsGuardedByTheRevisionsOfKeys) {
  const std::string json =
      change_json({{{"lock", 7}, {"b", 0}}, {Put{"a", "1", 9}, Delete{{"b", "c"}}}}, "");
  EXPECT_EQ(json,
            R"({"compare":[{"key":"bG9jaw==","target":"MOD","result":"EQUAL","mod_revision":"7"},)"
            R"({"key":"Yg==","target":"MOD","result":"EQUAL","mod_revision":"0"}],)"
            R"("success":[{"request_put":{"key":"YQ==","value":"MQ==","lease":"9"}},)"
            R"({"request_delete_range":{"key":"Yg==","range_end":"Yw=="}}]})");
}

TEST(GatewayJson, AQueryNamesItsRangeLimitAndRevision) {
  EXPECT_EQ(query_json({{"a", "b"}, 5, 6}, ""),
            R"({"key":"YQ==","range_end":"Yg==","limit":"5","revision":"6"})");
  EXPECT_EQ(query_json({{"a"}}, ""), R"({"key":"YQ==","limit":"0","revision":"0"})");
}

TEST(GatewayJson, WhatIsZeroIsLeftOutOfAnAnswer) {
  const auto failed = read_change(R"({"header":{"revision":"12"}})");
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->done);
  EXPECT_EQ(failed->revision, 12);
  const auto nothing = read_query(R"({"header":{"revision":"12"}})", "");
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->keys.empty());
}

TEST(GatewayJson, KeysComeWithTheirRevisions) {
  const auto found = read_query(
      R"({"header":{"revision":"12"},"kvs":[{"key":"YQ==","value":"MQ==","mod_revision":"3"},)"
      R"({"key":"Yg==","mod_revision":"4"}],"more":true,"count":"5"})",
      "");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->keys.size(), 2U);
  EXPECT_EQ(found->keys[0].value, "1");
  EXPECT_EQ(found->keys[1].value, "");
  EXPECT_EQ(found->keys[1].changed, 4);
  EXPECT_TRUE(found->more);
}

TEST(GatewayJson, AllKeysHaveThePrefixAndNobodySeesIt) {
  const std::string json = change_json({{{"b", 0}}, {Put{"a", "1", 9}, Delete{{"b", "c"}}}}, "p/");
  EXPECT_EQ(json,
            R"({"compare":[{"key":"cC9i","target":"MOD","result":"EQUAL","mod_revision":"0"}],)"
            R"("success":[{"request_put":{"key":"cC9h","value":"MQ==","lease":"9"}},)"
            R"({"request_delete_range":{"key":"cC9i","range_end":"cC9j"}}]})");
  EXPECT_EQ(query_json({{"a", "b"}}, "p/"),
            R"({"key":"cC9h","range_end":"cC9i","limit":"0","revision":"0"})");
  EXPECT_EQ(query_json({{"a"}}, "p/"), R"({"key":"cC9h","limit":"0","revision":"0"})");
  const char* const answer =
      R"({"header":{"revision":"12"},"kvs":[{"key":"cC9h","mod_revision":"3"}]})";
  EXPECT_EQ(read_query(answer, "p/").value().keys.at(0).key, "a");
  EXPECT_FALSE(read_query(answer, "q/")) << "a key that was not asked for";
}

TEST(GatewayJson, ALeaseWithoutTimeHasEnded) {
  EXPECT_TRUE(read_renewal(R"({"result":{"header":{},"ID":"7","TTL":"5"}})"));
  const Status ended = read_renewal(R"({"result":{"header":{},"ID":"7"}})");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::kRefused);
}

TEST(GatewayJson, WhatCannotBeReadIsAnErrorAndNeverAnAnswer) {
  for (const char* json :
       {"", "{", "null", "[]", "7", R"({"header":7})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"99999999999999999999"}})", R"({"header":{"revision":[1]}})"}) {
    EXPECT_FALSE(read_change(json)) << json;
    EXPECT_FALSE(read_query(json, "")) << json;
    EXPECT_FALSE(read_grant(json)) << json;
    EXPECT_FALSE(read_renewal(json)) << json;
    EXPECT_FALSE(read_token(json)) << json;
  }
  EXPECT_FALSE(read_query(R"({"header":{"revision":"1"},"kvs":[{"key":"*"}]})", ""));
  EXPECT_FALSE(read_query(R"({"header":{"revision":"1"},"kvs":7})", ""));
  EXPECT_FALSE(read_query(R"({"header":{"revision":"1"},"kvs":[7,{"key":7}]})", ""));
}

TEST(GatewayJson, ARefusalSaysWhetherToTryAgainAndWhatToMend) {
  const auto full =
      read_refusal(429, R"({"error":"etcdserver: mvcc: database space exceeded","code":8})");
  EXPECT_EQ(full.kind, ErrorKind::kUnreachable);
  EXPECT_THAT(full.text, HasSubstr("etcdctl alarm disarm"));
  EXPECT_EQ(read_refusal(503, R"({"error":"etcdserver: no leader","code":14})").kind,
            ErrorKind::kUnreachable);
  EXPECT_EQ(read_refusal(403, R"({"error":"etcdserver: permission denied","code":7})").kind,
            ErrorKind::kUsage);
  EXPECT_TRUE(
      read_refusal(401, R"({"error":"etcdserver: invalid auth token","code":16})").token_is_old);
  EXPECT_EQ(read_refusal(404, R"({"error":"requested lease not found","code":5})").kind,
            ErrorKind::kRefused);
  EXPECT_EQ(read_refusal(502, "").text, "HTTP status 502");
  EXPECT_EQ(read_refusal(400, "CommonName of client\n").text, "CommonName of client");
  EXPECT_EQ(read_refusal(400, "CommonName of client\n").kind, ErrorKind::kUsage);
}

TEST(GatewayJson, APasswordMayHaveAnyCharacters) {
  EXPECT_EQ(login_json("a\"b", "\\\x01"), R"({"name":"a\"b","password":"\\\u0001"})");
}

}  // namespace
}  // namespace antdt::store
